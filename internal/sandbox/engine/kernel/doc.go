// Package kernel holds the arithmetic of the sandbox's model: float32 matrix products, a few element-wise steps of a
// transformer, and the elementary functions that they and the model's tables need.
//
// Its bits are a contract. Scalar Go, AVX2 and AVX-512 give the same result for the same input on every machine, because:
//   - every output element of a product has one accumulator, and terms are added to it in index order, starting from zero
//     or from the value already there; vectors run over columns, never over the summed index;
//   - every product is rounded before it is added: Go code writes float32(a*b) + c, the assembly has no fused multiply-add;
//   - a sum over a row (Sum, Dot) is always sixteen interleaved partial sums, folded in one fixed order;
//   - exp, log, sine, cosine and powers are this package's own; of package math only Sqrt, Frexp and Ldexp are used, which
//     are exact everywhere.
//
// The promise covers finite numbers, infinities and the place of a NaN, not the payload of a NaN.
//
// The assembly is written by the program in gen; a test there compares it with the file that is checked in.
package kernel

//go:generate go run ./gen
