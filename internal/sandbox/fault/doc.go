// Package fault says what goes wrong, and when: a Rule is one line of what a person asks for, Dice decides at each event
// whether it befalls it. The sandbox does the rest; nothing in here knows a server.
//
// Decisions are reproducible: each is a function of the seed, the rule's text, the event's name and its number among the
// events of that name, so that other traffic and other rules do not change it.
package fault
