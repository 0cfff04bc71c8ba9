package recipe

// envDir is the key of the folder that an environment's program runs in.
const envDir = "rollout.env.dir"

// EnvDir is the absolute folder that the program of rollout.env runs in: dir from the folder of the file in which it stands, or
// where it is left out, of that in which the command does. A resolved recipe has it written out, so that a run that goes on
// finds its program. rollout.env is not null.
func (r *Recipe) EnvDir() string {
	from := envDir
	if !r.Given(from) {
		from = "rollout.env.command"
	}
	return absolute(r.Dir(from), r.Rollout.Env.Dir)
}
