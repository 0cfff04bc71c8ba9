// Command gen teaches the pretrained model anew and writes its file: minutes on two cores, the same bytes on every machine.
// It is for a change of the course or of the engine's bits; CONTRIBUTING.md says how to run it.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"time"

	"trainer/internal/sandbox/pretrained/curriculum"
)

func main() {
	out := flag.String("out", "tiny.safetensors", "the file to write")
	flag.Parse()
	log.SetFlags(0)
	if err := write(*out); err != nil {
		log.Fatal(err)
	}
}

func write(path string) error {
	start := time.Now()
	weights := curriculum.Train(curriculum.Steps, func(done int, loss float64) {
		if done%200 == 0 {
			log.Printf("step %d of %d, loss %.4f, %s", done, curriculum.Steps, loss, time.Since(start).Round(time.Second))
		}
	}).Publish()
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := weights.SaveBase(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	for _, task := range curriculum.Examined() {
		lessons := curriculum.Exam(task, 200)
		grade, err := curriculum.Grade(weights, lessons)
		if err != nil {
			return err
		}
		fmt.Printf("%-10s %.2f of %d before rounding\n", task, grade, len(lessons))
	}
	return nil
}
