package engine

// goldenHashes are those of the golden tests for this Version. They are the same on every machine.
var goldenHashes = map[string]string{
	"full":                    "968b5809d78db1e2068df881619d2c72c222a95f263a38bc756af0d685cd40fb",
	"LoRA":                    "318043dbe7d01fed74424d90b7b216b6bd50d79a6e502d7bed710b9c3c24654c",
	"LoRA without the head":   "3471f68bff361e5a67894f5ec7f545e4ff8bc1a086d70cc64f41fd63ff1dbf2a",
	"two-level":               "5b7550e953739b4e754cc492df6ebba23bdb8607e600a59a94d42ea001fa973c",
	"two-level LoRA":          "a42852a3e5bad2ce919ea5b22db741e0573d760447a845ecbbd62b96d32c19f2",
	"samples, LoRA":           "8f7c33d548ffcb2d720433963b75ce67b1bbd5a622311f6b7603b760f5162ff7",
	"samples, two-level LoRA": "5cb387fb692077faf0f1ec1af4e38e0cfb53d0a225da8dad75fd063eff24c421",
	"Muon, full":              "86a12e41395a71fec87e1701d807efd474529b709851afc21cbf63ef98cb7342",
	"Muon, two-level LoRA":    "db88a5e69d9365d44c9906a2369ce2191b30efaa16e9cf6d5f4fd85109982367",
}
