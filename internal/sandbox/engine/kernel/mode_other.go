//go:build !amd64

package kernel

func available() []*set { return []*set{{mode: Scalar}} }
