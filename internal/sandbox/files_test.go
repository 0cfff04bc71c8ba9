package sandbox

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"trainer/internal/wire"
)

// safetensors is a file read by its format alone.
type safetensors map[string]struct {
	shape  []int
	values []float64
}

func readSafetensors(t *testing.T, b []byte) safetensors {
	t.Helper()
	n := binary.LittleEndian.Uint64(b)
	var head map[string]json.RawMessage
	if err := json.Unmarshal(b[8:8+n], &head); err != nil {
		t.Fatal(err)
	}
	delete(head, "__metadata__")
	out := safetensors{}
	for name, text := range head {
		var h struct {
			Shape   []int  `json:"shape"`
			Offsets [2]int `json:"data_offsets"`
		}
		if err := json.Unmarshal(text, &h); err != nil {
			t.Fatal(err)
		}
		x := out[name]
		x.shape = h.Shape
		for data := b[8+int(n)+h.Offsets[0] : 8+int(n)+h.Offsets[1]]; len(data) > 0; data = data[4:] {
			x.values = append(x.values, float64(math.Float32frombits(binary.LittleEndian.Uint32(data))))
		}
		out[name] = x
	}
	return out
}

// linear is x·Wᵀ for a weight [out][in], as Transformers has it.
func (s safetensors) linear(name string, x []float64) []float64 {
	w := s[name]
	out := make([]float64, w.shape[0])
	for i := range out {
		for j, v := range x {
			out[i] += w.values[i*w.shape[1]+j] * v
		}
	}
	return out
}

func (s safetensors) norm(name string, x []float64, epsilon float64) []float64 {
	square := 0.0
	for _, v := range x {
		square += v * v
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = v / math.Sqrt(square/float64(len(x))+epsilon) * s[name].values[i]
	}
	return out
}

// llama is the published architecture, by the book and in float64: the log-probability of every next id after ids.
func (s safetensors) llama(c llamaConfig, ids []int32) []float64 {
	hd := c.Hidden / c.Heads
	turn := func(x []float64, at int) {
		for h := range c.Heads {
			for i := range hd / 2 {
				angle := float64(at) * math.Pow(c.RopeTheta, -float64(2*i)/float64(hd))
				a, b := x[h*hd+i], x[h*hd+i+hd/2]
				x[h*hd+i], x[h*hd+i+hd/2] = a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
			}
		}
	}
	var xs [][]float64
	for _, id := range ids {
		xs = append(xs, slices.Clone(s["model.embed_tokens.weight"].values[int(id)*c.Hidden:(int(id)+1)*c.Hidden]))
	}
	for l := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", l)
		var qs, ks, vs [][]float64
		for t, x := range xs {
			n := s.norm(p+"input_layernorm.weight", x, c.NormEpsilon)
			q, k := s.linear(p+"self_attn.q_proj.weight", n), s.linear(p+"self_attn.k_proj.weight", n)
			turn(q, t)
			turn(k, t)
			qs, ks, vs = append(qs, q), append(ks, k), append(vs, s.linear(p+"self_attn.v_proj.weight", n))
		}
		for t, x := range xs {
			mixed := make([]float64, c.Hidden)
			for h := range c.Heads {
				var w []float64
				sum := 0.0
				for u := range t + 1 {
					score := 0.0
					for i := h * hd; i < (h+1)*hd; i++ {
						score += qs[t][i] * ks[u][i]
					}
					w = append(w, math.Exp(score/math.Sqrt(float64(hd))))
					sum += w[u]
				}
				for u := range w {
					for i := h * hd; i < (h+1)*hd; i++ {
						mixed[i] += w[u] / sum * vs[u][i]
					}
				}
			}
			for i, v := range s.linear(p+"self_attn.o_proj.weight", mixed) {
				x[i] += v
			}
			n := s.norm(p+"post_attention_layernorm.weight", x, c.NormEpsilon)
			gate, up := s.linear(p+"mlp.gate_proj.weight", n), s.linear(p+"mlp.up_proj.weight", n)
			for i, g := range gate {
				gate[i] = g / (1 + math.Exp(-g)) * up[i]
			}
			for i, v := range s.linear(p+"mlp.down_proj.weight", gate) {
				x[i] += v
			}
		}
	}
	head := "lm_head.weight"
	if c.Tied {
		head = "model.embed_tokens.weight"
	}
	logits := s.linear(head, s.norm("model.norm.weight", xs[len(xs)-1], c.NormEpsilon))
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(v)
	}
	for i := range logits {
		logits[i] -= math.Log(sum)
	}
	return logits
}

// download fetches every file of a checkpoint, and holds it to its size.
func (c *client) download(plain *client, id string, variant wire.CheckpointVariant) map[string][]byte {
	c.t.Helper()
	var files wire.CheckpointFiles
	c.ok("GET", wire.PathCheckpoints+"/"+id+"/download?variant="+string(variant), "", &files)
	out := map[string][]byte{}
	for _, f := range files.Data {
		status, b := plain.do("GET", f.URL, nil)
		if status != 200 || len(b) != int(f.Size) {
			c.t.Errorf("%s: got %d with %d bytes, want %d", f.Filename, status, len(b), f.Size)
		}
		out[f.Filename] = b
	}
	return out
}

func TestMergedFilesAreALlamaOfTheSameLogprobs(t *testing.T) {
	s, c := open(t, Options{Dir: t.TempDir(), Key: "secret"})
	plain := c
	c = &client{t: t, http: withKey{s}}
	r := c.resource(`{"base_model":"sandbox/bytes-tiny"}`)
	full := c.resource(`{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`)
	for name, id := range map[string]string{
		"LoRA":                  c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":6,"alpha":9}}`).ID,
		"LoRA without the head": c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":4,"train_unembed":false}}`).ID,
		"full weights":          c.session(`{"model_resources_id":"` + full.ID + `"}`).ID,
	} {
		c.learn(id, 3, row("the capital of france is paris"))
		var saved wire.InferenceCheckpointOutput
		c.run(id, wire.KindInferenceCheckpoint, "", &saved)
		c.learn(id, 1, row("and on"))
		files := c.download(plain, saved.Checkpoint.ID, wire.VariantMerged)
		var config llamaConfig
		if err := json.Unmarshal(files["config.json"], &config); err != nil || config.Architectures[0] != "LlamaForCausalLM" {
			t.Fatalf("%s: config.json: %s, %v", name, files["config.json"], err)
		}
		tensors := readSafetensors(t, files["model.safetensors"])
		if _, own := tensors["lm_head.weight"]; own == config.Tied {
			t.Errorf("%s: tie_word_embeddings is %v beside a head of its own: %v", name, config.Tied, own)
		}
		// The weights before the last step, from a session that starts from the checkpoint.
		resource := r.ID
		if name == "full weights" {
			c.ok("POST", wire.PathSessions+"/"+id+"/stop", "", nil)
			resource = full.ID
		}
		again := c.session(`{"model_resources_id":"` + resource + `","resume_from_checkpoint_id":"` + saved.Checkpoint.ID + `"}`).ID
		x := row("the capital")
		for i := range x.Weights {
			x.Weights[i] = 1
		}
		want := c.loss(again, `,"forward_only":true,"return_loss_fn_outputs":true`, x).Logprobs[0]
		for at := range x.Tokens {
			if got := tensors.llama(config, x.Tokens[:at+1])[x.Targets[at]]; math.Abs(got-want[at]) > 1e-4 {
				t.Errorf("%s, position %d: the files give %v, the trainer %v", name, at, got, want[at])
			}
		}
	}
}

func TestAdapterFilesAreThoseOfPEFT(t *testing.T) {
	_, c := open(t, Options{})
	for _, base := range []string{"sandbox/bytes-tiny", "Qwen/Qwen3-8B"} {
		r := c.resource(`{"base_model":"` + base + `"}`)
		id := c.session(`{"model_resources_id":"` + r.ID + `","lora_config":{"rank":6,"alpha":9,"dropout":0.1}}`).ID
		c.learn(id, 1, row("hello"))
		var saved wire.InferenceCheckpointOutput
		c.run(id, wire.KindInferenceCheckpoint, "", &saved)
		files := c.download(c, saved.Checkpoint.ID, wire.VariantAdapter)
		var config peftConfig
		if err := json.Unmarshal(files["adapter_config.json"], &config); err != nil || config.Rank != 6 || config.Alpha != 9 || config.Base != base {
			t.Errorf("adapter_config.json: %s, %v", files["adapter_config.json"], err)
		}
		tensors := readSafetensors(t, files["adapter_model.safetensors"])
		const q = "base_model.model.model.layers.1.self_attn.q_proj.lora_"
		if a, b := tensors[q+"A.weight"].shape, tensors[q+"B.weight"].shape; !slices.Equal(a, []int{6, 64}) || !slices.Equal(b, []int{64, 6}) {
			t.Errorf("%s: got shapes %v and %v", base, a, b)
		}
		for _, module := range config.TargetModules {
			found := false
			for name := range tensors {
				found = found || strings.HasSuffix(name, "."+module+".lora_A.weight")
			}
			if !found {
				t.Errorf("%s: target module %s has no tensor", base, module)
			}
		}
		merged := c.download(c, saved.Checkpoint.ID, wire.VariantMerged)
		if len(merged["model.safetensors"]) == 0 || len(merged["generation_config.json"]) == 0 {
			t.Errorf("%s: merged files: %d", base, len(merged))
		}
	}
}

func TestDownloadsAreRefusedByName(t *testing.T) {
	_, c := open(t, Options{})
	full := c.resource(`{"base_model":"sandbox/bytes-tiny","lora_enabled":false}`)
	id := c.session(`{"model_resources_id":"` + full.ID + `"}`).ID
	var training wire.TrainingCheckpointOutput
	var inference wire.InferenceCheckpointOutput
	c.run(id, wire.KindTrainingCheckpoint, "", &training)
	c.run(id, wire.KindInferenceCheckpoint, "", &inference)
	at := func(id, query string) string { return wire.PathCheckpoints + "/" + id + "/download" + query }
	for _, tt := range []struct {
		name, path, param string
		status            int
	}{
		{"no variant", at(inference.Checkpoint.ID, ""), "variant", 400},
		{"an unknown variant", at(inference.Checkpoint.ID, "?variant=ADAPTER"), "variant", 400},
		{"an adapter of full weights", at(inference.Checkpoint.ID, "?variant=CHECKPOINT_VARIANT_ADAPTER"), "variant", 400},
		{"a training checkpoint", at(training.Checkpoint.ID, "?variant=CHECKPOINT_VARIANT_MERGED"), "id", 400},
		{"a checkpoint that does not exist", at("nothing", "?variant=CHECKPOINT_VARIANT_MERGED"), "id", 404},
		{"an address that was not handed out", "/files/" + inference.Checkpoint.ID + ".merged.model.safetensors?sig=x", "sig", 403},
	} {
		e := c.refused(tt.status, "GET", tt.path, "")
		if e.Param == nil || *e.Param != tt.param {
			t.Errorf("%s: got %+v, want %s", tt.name, e, tt.param)
		}
	}
}
