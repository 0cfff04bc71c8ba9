package kernel

import (
	"sync"

	"golang.org/x/sys/cpu"
)

var available = sync.OnceValue(func() []*set {
	all := []*set{{mode: Scalar}}
	if cpu.X86.HasAVX2 {
		all = append(all, &set{AVX2, &tiles{
			many:   []strip{{6, 16, tile6x16AVX2}, {4, 16, tile4x16AVX2}, {2, 16, tile2x16AVX2}, {1, 16, tile1x16AVX2}},
			single: []strip{{1, 64, tile1x64AVX2}, {1, 32, tile1x32AVX2}, {1, 16, tile1x16AVX2}},
		}})
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasAVX512F {
		all = append(all, &set{AVX512, &tiles{
			many:   []strip{{4, 32, tile4x32AVX512}, {1, 32, tile1x32AVX512}, {4, 16, tile4x16AVX512}, {1, 16, tile1x16AVX512}},
			single: []strip{{1, 64, tile1x64AVX512}, {1, 32, tile1x32AVX512}, {1, 16, tile1x16AVX512}},
		}})
	}
	return all
})
