// Package curriculum is what the model sandbox/pretrained-tiny was taught, and how: its shape, the tasks with their shares, the
// order of the lessons, the rates. Nothing is drawn from a clock or a machine: lesson i of step s is a function of (s, i), and
// the engine's bits are a contract, so Train gives the same weights everywhere. The shipped file is a cache of it.
//
// The tasks are small ones whose answers a program can check (reverse a word, count a letter, add), and prose: questions about
// a sentence just read, small facts, small talk, plain text. So a fine-tuning finds something to build on, a reward is not 0 at
// the first step, and an evaluation before training means something. Some tasks have small shares, so that they are known by
// halves: there is room for reinforcement. A greeting comes in two manners equally often: there is a choice for preferences.
//
// An eighth of the contents of every task, by hash, is never trained, but for what is learned by heart: Exam draws from it.
package curriculum
