package recipe

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"trainer/internal/diag"
)

// foreign are names that people bring from other tools: the key that is meant, and what to mind in moving the value.
// convert, where it is set, is fed the value if it is a number.
var foreign = map[string]struct {
	is      string
	convert func(v float64) string
}{
	"lr":                          {"optimizer.learning_rate", nil},
	"learning_rate":               {"optimizer.learning_rate", nil},
	"max_lr":                      {"optimizer.learning_rate", nil},
	"lr_scheduler":                {"lr_schedule", nil},
	"lr_scheduler_type":           {"lr_schedule.type", nil},
	"scheduler":                   {"lr_schedule.type", nil},
	"schedule":                    {"lr_schedule.type", nil},
	"warmup":                      {"lr_schedule.warmup_steps (steps) or lr_schedule.warmup_ratio (a share)", nil},
	"num_warmup_steps":            {"lr_schedule.warmup_steps", nil},
	"min_lr":                      {"lr_schedule.min_lr_ratio, a share of the peak", nil},
	"adam_beta1":                  {"optimizer.beta1", nil},
	"adam_beta2":                  {"optimizer.beta2", nil},
	"adam_epsilon":                {"optimizer.eps", nil},
	"max_grad_norm":               {"optimizer.grad_clip_norm", nil},
	"gradient_clipping":           {"optimizer.grad_clip_norm", nil},
	"clip_grad_norm":              {"optimizer.grad_clip_norm", nil},
	"epsilon":                     {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"clip_ratio":                  {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"cliprange":                   {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"clip_range":                  {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"clip_eps":                    {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"eps_clip":                    {"loss.params.clip_low_threshold and clip_high_threshold, bounds of the ratio itself", bothBounds},
	"clip_ratio_low":              {"loss.params.clip_low_threshold, the bound of the ratio itself", lowBound},
	"epsilon_low":                 {"loss.params.clip_low_threshold, the bound of the ratio itself", lowBound},
	"clip_low":                    {"loss.params.clip_low_threshold, the bound of the ratio itself", lowBound},
	"clip_ratio_high":             {"loss.params.clip_high_threshold, the bound of the ratio itself", highBound},
	"epsilon_high":                {"loss.params.clip_high_threshold, the bound of the ratio itself", highBound},
	"clip_high":                   {"loss.params.clip_high_threshold, the bound of the ratio itself", highBound},
	"importance_sampling_level":   {"loss.params.ratio_type", nil},
	"loss_agg_mode":               {"loss.params.agg_type", nil},
	"scale_rewards":               {"advantage.scale", nil},
	"pref_beta":                   {"loss.params.beta", nil},
	"dpo_beta":                    {"loss.params.beta", nil},
	"orpo_alpha":                  {"loss.params.beta", nil},
	"simpo_gamma":                 {"loss.params.gamma", nil},
	"gamma_beta_ratio":            {"loss.params.gamma, this value × beta", nil},
	"pref_ftx":                    {"loss.params.sft_weight", nil},
	"rpo_alpha":                   {"loss.params.sft_weight", nil},
	"cpo_alpha":                   {"loss.params.sft_weight", nil},
	"sft_coef":                    {"loss.params.sft_weight", nil},
	"pref_loss":                   {"loss.type", nil},
	"kl_penalty":                  {"advantage.kl_coef, or loss.params.beta of grpo", nil},
	"kl_beta":                     {"loss.params.beta", nil},
	"num_generations":             {"rollout.group_size", nil},
	"rollout_n":                   {"rollout.group_size", nil},
	"samples_per_prompt":          {"rollout.group_size", nil},
	"n_samples_per_prompt":        {"rollout.group_size", nil},
	"max_completion_length":       {"rollout.sampling_params.max_tokens", nil},
	"max_new_tokens":              {"rollout.sampling_params.max_tokens", nil},
	"max_response_length":         {"rollout.sampling_params.max_tokens", nil},
	"per_device_train_batch_size": {"train.batch_size, the whole optimiser step: this value × gradient accumulation × devices", nil},
	"per_device_batch_size":       {"train.batch_size, the whole optimiser step: this value × gradient accumulation × devices", nil},
	"micro_batch_size":            {"train.batch_size, the whole optimiser step: this value × gradient accumulation × devices", nil},
	"train_batch_size":            {"train.batch_size", nil},
	"global_batch_size":           {"train.batch_size", nil},
	"gradient_accumulation_steps": {"train.gradient_accumulation, which splits train.batch_size and never multiplies it", nil},
	"num_train_epochs":            {"train.epochs", nil},
	"num_epochs":                  {"train.epochs", nil},
	"max_steps":                   {"train.num_steps (the schedule's length), or limits.max_steps (a stop before it)", nil},
	"total_steps":                 {"train.num_steps", nil},
	"max_seq_len":                 {"dataset.max_length", nil},
	"max_seq_length":              {"dataset.max_length", nil},
	"sequence_len":                {"dataset.max_length", nil},
	"cutoff_len":                  {"dataset.max_length", nil},
	"model_max_length":            {"dataset.max_length", nil},
	"max_prompt_length":           {"dataset.max_length", nil},
	"val_set_size":                {"dataset.validation_split", nil},
	"test_size":                   {"dataset.validation_split", nil},
	"train_on_inputs":             {"chat.train_on (all_tokens for true)", nil},
	"train_on_prompt":             {"chat.train_on (all_tokens for true)", nil},
	"chat_template":               {"chat.template", nil},
	"system_prompt":               {"chat.system", nil},
	"model":                       {"base_model", nil},
	"model_name":                  {"base_model", nil},
	"model_name_or_path":          {"base_model", nil},
	"lora":                        {"lora_config", nil},
	"peft":                        {"lora_config", nil},
	"lora_r":                      {"lora_config.rank", nil},
	"lora_rank":                   {"lora_config.rank", nil},
	"r":                           {"lora_config.rank", nil},
	"lora_alpha":                  {"lora_config.alpha", nil},
	"lora_dropout":                {"lora_config.dropout", nil},
	"method":                      {"loss.type, which decides the loop", nil},
	"algorithm":                   {"loss.type, which decides the loop", nil},
	"eval_steps":                  {"eval.every", nil},
	"eval_every":                  {"eval.every", nil},
	"save_steps":                  {"checkpoint.every", nil},
	"save_every":                  {"checkpoint.every", nil},
	"save_total_limit":            {"checkpoint.keep_last", nil},
	"resume_from_checkpoint":      {"init_from, or trainer resume for a run that stopped", nil},
	"wandb_project":               {"logging.wandb.project", nil},
	"report_to":                   {"logging", nil},
	"output_dir":                  {"name (run folders are runs/<name>-<stamp>)", nil},
	"run_name":                    {"name", nil},
	"reward_funcs":                {"reward", nil},
	"loss_type":                   {"loss.type", nil},
	"optim":                       {"optimizer.type", nil},
	"datasets":                    {"dataset.train", nil},
	"dataset_path":                {"dataset.train", nil},
	"base_url":                    {"nothing here: the address comes from TOGETHER_BASE_URL", nil},
	"n_gpus":                      {"nothing here: a resource's size is the service's", nil},
	"vf_coef":                     {"nothing here: there is no value model", nil},
	"ref_model":                   {"reference", nil},
	"teacher_model":               {"teacher.base_model", nil},
	"temperature":                 {"rollout.sampling_params.temperature", nil},
	"accumulate_grad_batches":     {"train.gradient_accumulation, which splits train.batch_size and never multiplies it", nil},
	"random_seed":                 {"seed", nil},
	"data_seed":                   {"seed, from which the order of the rows derives", nil},
	"shuffle_seed":                {"seed, from which the order of the rows derives", nil},
	"early_stopping_patience":     {"eval.early_stop.patience", nil},
	"betas":                       {"optimizer.beta1 and optimizer.beta2", nil},
	"label_smoothing_factor":      {"loss.params.label_smoothing", nil},
	"truncation":                  {"dataset.overlong", nil},
	"adapter":                     {"lora_config", nil},
	"output_name":                 {"name", nil},
	"num_train_steps":             {"train.num_steps", nil},
	"max_train_steps":             {"train.num_steps", nil},
	"warmup_epochs":               {"lr_schedule.warmup_ratio, a share of all steps", nil},
	"per_device_eval_batch_size":  {"nothing here: evaluation sends as many rows as the model takes", nil},
	"rollout_batch_size":          {"rollout.batch_size, in prompts", nil},
	"ppo_epochs":                  {"rollout.num_iterations", nil},
	"num_ppo_epochs":              {"rollout.num_iterations", nil},
	"num_mini_batches":            {"rollout.minibatches", nil},
	"mini_batch_size":             {"rollout.minibatches, their number", nil},
	"train_on_responses_only":     {"chat.train_on (all_assistant_messages for true)", nil},
	"completion_only_loss":        {"chat.train_on (all_assistant_messages for true)", nil},
	"assistant_only_loss":         {"chat.train_on (all_assistant_messages for true)", nil},
}

// foreignParam is the parameter of a loss that a foreign name stands for, or "".
func foreignParam(name string) string {
	is, ok := strings.CutPrefix(foreign[strings.ReplaceAll(name, "-", "_")].is, "loss.params.")
	if !ok {
		return ""
	}
	param, _, _ := strings.Cut(is, ",")
	param, _, _ = strings.Cut(param, " ")
	return param
}

func bothBounds(v float64) string {
	return fmt.Sprintf("%s and %s for %s", short(1-v), short(1+v), short(v))
}
func lowBound(v float64) string  { return fmt.Sprintf("%s for %s", short(1-v), short(v)) }
func highBound(v float64) string { return fmt.Sprintf("%s for %s", short(1+v), short(v)) }

func short(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// unknown says what a name is that stands among keys without being one of them: a name from elsewhere, a slip of the
// pen, or a key of another section. value may be nil.
func unknown(k *Key, keys []*Key, name string, value *node) string {
	if f, ok := foreign[strings.ReplaceAll(name, "-", "_")]; ok {
		if why, none := strings.CutPrefix(f.is, "nothing here: "); none {
			return "unknown key; " + why
		}
		msg := "unknown key; here it is " + f.is
		if v, err := strconv.ParseFloat(value.word(), 64); err == nil && f.convert != nil && v > 0 && v < 1 {
			msg += ": " + f.convert(v)
		}
		return msg
	}
	if len(name) > 64 {
		return "unknown key"
	}
	names := keyNames(keys)
	if owners := k.owners(name); owners != nil {
		return fmt.Sprintf("is a key of type %s", strings.Join(owners, ", "))
	}
	if near := diag.DidYouMean(name, names); near != "" {
		return "unknown key" + near
	}
	if secretName(name) {
		return "unknown key; secrets come from the environment, never from a recipe"
	}
	if near := diag.Nearest(name, namesBelow(k)); near != "" {
		return fmt.Sprintf("unknown key here; did you mean %s?", strings.Join(elsewhere(k, near), " or "))
	}
	if at := elsewhere(root, name); len(at) == 1 || len(at) > 1 && len(at) <= 3 {
		return "unknown key here; there is " + strings.Join(at, ", ")
	}
	if len(names) == 0 {
		return "unknown key; nothing stands here"
	}
	if len(names) > 16 {
		return "unknown key"
	}
	return "unknown key; known are " + strings.Join(names, ", ")
}

// namesBelow lists the names of all keys under k.
func namesBelow(k *Key) []string {
	names := keyNames(k.Keys)
	for _, c := range k.Keys {
		names = append(names, namesBelow(c)...)
	}
	if k.Elem != nil {
		names = append(names, namesBelow(k.Elem)...)
	}
	return names
}

// elsewhere lists the paths of the keys with this name.
func elsewhere(k *Key, name string) []string {
	var out []string
	for _, c := range k.Keys {
		if c.Name == name {
			out = append(out, strings.ReplaceAll(c.Path, ".N.", ".0."))
		}
		out = append(out, elsewhere(c, name)...)
	}
	if k.Elem != nil {
		out = append(out, elsewhere(k.Elem, name)...)
	}
	slices.Sort(out)
	return out
}
