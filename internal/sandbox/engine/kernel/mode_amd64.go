package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"
)

var available = sync.OnceValue(func() []*set {
	all := []*set{{mode: Scalar}}
	if cpu.X86.HasAVX2 {
		all = append(all, &set{AVX2, &tiles{wide: tile4x16AVX2, width: 16, narrow: tile4x16AVX2,
			single: tile1x16AVX2, singleRow: tile1x16AVX2}})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasAVX512F {
		all = append(all, &set{AVX512, &tiles{wide: tile4x32AVX512, width: 32, narrow: tile4x16AVX512,
			single: tile1x16AVX512, singleRow: tile1x32AVX512}})
	}
	return all
})
