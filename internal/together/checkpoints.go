package together

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"trainer/internal/download"
	"trainer/internal/wire"
	"trainer/runner"
)

// Checkpoint is a checkpoint at the service, of any session.
type Checkpoint = runner.Checkpoint

// Checkpoints lists the checkpoints of a session, newest first; of every session of the project when session is empty.
func (c *Client) Checkpoints(ctx context.Context, session string) ([]Checkpoint, error) {
	query := url.Values{}
	if session != "" {
		query.Set("session_id", session)
	}
	list, _, err := all(ctx, c, wire.PathCheckpoints, query, func(k wire.Checkpoint) string { return k.ID })
	if err != nil {
		return nil, err
	}
	out := make([]Checkpoint, len(list))
	for i := range list {
		out[i] = checkpoint(&list[i])
	}
	return out, nil
}

// Checkpoint implements runner.Backend.
func (c *Client) Checkpoint(ctx context.Context, id string) (Checkpoint, error) {
	var w wire.Checkpoint
	err := c.do(ctx, &call{method: http.MethodGet, path: checkpointPath(id), read: into(&w)}, reading)
	return checkpoint(&w), err
}

// Files lists the files of an inference checkpoint: of the merged model, or of the adapter of a LoRA session.
func (c *Client) Files(ctx context.Context, id string, adapter bool) ([]download.File, error) {
	variant := wire.VariantMerged
	if adapter {
		variant = wire.VariantAdapter
	}
	var w wire.CheckpointFiles
	k := &call{method: http.MethodGet, path: checkpointPath(id) + "/download?variant=" + string(variant), read: into(&w)}
	if err := c.do(ctx, k, reading); err != nil {
		return nil, err
	}
	files := make([]download.File, len(w.Data))
	for i, f := range w.Data {
		files[i] = download.File{Name: f.Filename, Size: int64(f.Size), URL: f.URL}
	}
	return files, nil
}

func checkpointPath(id string) string { return wire.PathCheckpoints + "/" + url.PathEscape(id) }

func checkpoint(w *wire.Checkpoint) Checkpoint {
	c := Checkpoint{
		SavedCheckpoint: runner.SavedCheckpoint{ID: w.ID, Step: int64(w.Step), CreatedAt: w.CreatedAt},
		Inference:       w.Type == wire.CheckpointInference,
		BaseModel:       w.BaseModel, Session: w.SessionID, LoRARank: w.LoRARank,
	}
	if c.Inference {
		registered(&c.SavedCheckpoint, w.InferenceRegistration)
	} else if a := w.TrainingRegistration; a != nil {
		c.Registered, c.Revision = a.ID, a.RevisionID
	}
	return c
}

// registered takes over where an inference checkpoint stands in the project's models.
func registered(c *runner.SavedCheckpoint, r *wire.InferenceRegistration) {
	switch {
	case r == nil:
	case r.Adapter != nil:
		c.Registered, c.Revision, c.Adapter = r.Adapter.ID, r.Adapter.RevisionID, true
	case r.Model != nil:
		c.Registered, c.Revision = r.Model.ID, r.Model.RevisionID
	}
}

var errNoCheckpoint = errors.New("its output has no checkpoint")
