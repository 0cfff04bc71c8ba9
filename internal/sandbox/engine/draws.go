package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// promptKey is a prompt as a map's key.
func promptKey(prompt []int32) string {
	b := make([]byte, 0, 4*len(prompt))
	for _, id := range prompt {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return string(b)
}

// drawRoot hashes what all draws of a call depend on.
func (w *Weights) drawRoot(r *SampleRequest) [32]byte {
	h := sha256.New()
	fmt.Fprintf(h, "weights %x", w.hash)
	if w.lora != nil {
		fmt.Fprintf(h, " rank %d alpha %x over %x", w.lora.Rank, w.lora.Alpha, w.base.hash)
	}
	fmt.Fprintf(h, "; max %d temperature %x p %x k %d stop %d %q", r.MaxTokens, r.Temperature, r.TopP, r.TopK, r.StopIDs, r.StopTexts)
	if r.Seed != nil {
		fmt.Fprintf(h, " seed %d", *r.Seed)
	}
	return [32]byte(h.Sum(nil))
}

// drawsOf are the random numbers of one completion: two for each of its tokens.
func drawsOf(root [32]byte, prompt string, ordinal, sample int) stream {
	h := sha256.New()
	h.Write(root[:])
	_ = binary.Write(h, binary.LittleEndian, []uint64{uint64(ordinal), uint64(sample)}) // a hash takes everything
	h.Write([]byte(prompt))
	return stream(binary.LittleEndian.Uint64(h.Sum(nil)))
}
