package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestTheCheckedInFilesAreWhatTheGeneratorWrites(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes: run go generate in internal/sandbox/engine/kernel", name)
		}
	}
}

func TestNoKernelFusesMultiplyAndAdd(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if asm := files["kernel_amd64.s"]; !bytes.Contains(asm, []byte("VMULPS")) || bytes.Contains(asm, []byte("VFM")) {
		t.Error("want separate multiplications and additions only: fusing changes the bits")
	}
}
