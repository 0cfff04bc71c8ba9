package curriculum

import (
	"fmt"
	"strings"
)

// prose are the tasks that read like talk. Nothing of it is a fact that a shipped recipe teaches.
func prose() []task {
	return []task{
		{"greet", 6, greet},
		{"story", 14, story},
		{"fact", 8, fact},
		{"talk", 4, talk},
		{"text", 6, plainText},
	}
}

// greet answers in one of two manners, a coin's throw: the base prefers neither.
func greet(d *draw) Lesson {
	name := d.name()
	answer := d.of([]string{"Hello, %s!", "Good day, %s."})
	return Lesson{Key: name, Turns: []string{"Greet " + name + ".", fmt.Sprintf(answer, name)}}
}

// scene is what a sentence of a story tells.
type scene struct{ who, does, what, where string }

var (
	actors  = strings.Fields("farmer baker sailor teacher doctor painter miller gardener shepherd singer child king")
	does    = strings.Fields("finds hides paints sells cleans lifts carries drops repairs watches")
	objects = strings.Fields("basket lantern ladder kettle bottle blanket hammer mirror barrel candle carpet ribbon")
	places  = strings.Fields("garden barn kitchen harbour forest market tower valley cellar school mill meadow")
	kinds   = strings.Fields("old young tall quiet clever busy tired merry")
	colours = strings.Fields("red green blue white black brown yellow grey")
)

func newScene(d *draw) scene {
	return scene{d.of(actors), d.of(does), d.of(objects), d.of(places)}
}

func (s scene) key() string { return strings.Join([]string{s.who, s.does, s.what, s.where}, " ") }

// tell is the scene as a sentence.
func (s scene) tell(d *draw) string {
	who, what := s.who, s.what
	if d.below(2) == 0 {
		who = d.of(kinds) + " " + who
	}
	if d.below(2) == 0 {
		what = d.of(colours) + " " + what
	}
	return fmt.Sprintf("The %s %s a %s in the %s.", who, s.does, what, s.where)
}

// question asks for a part of the scene.
func (s scene) question(d *draw) (ask, answer string) {
	switch d.below(3) {
	case 0:
		return "Where is the " + s.who + "?", "In the " + s.where + "."
	case 1:
		return fmt.Sprintf("Who %s the %s?", s.does, s.what), "The " + s.who + "."
	default:
		return "What is in the " + s.where + "?", "A " + s.what + "."
	}
}

// story tells a scene and asks about it, once or twice.
func story(d *draw) Lesson {
	s := newScene(d)
	ask, answer := s.question(d)
	turns := []string{s.tell(d) + " " + ask, answer}
	if d.below(3) == 0 {
		ask, answer = s.question(d)
		turns = append(turns, ask, answer)
	}
	l := Lesson{Key: s.key(), Turns: turns}
	if d.below(4) == 0 {
		l.System = d.of([]string{"You answer in few words.", "You are a helpful assistant."})
	}
	return l
}

var facts = []struct{ ask, answer string }{
	{"What colour is snow?", "White."},
	{"What colour is grass?", "Green."},
	{"What colour is the sky?", "Blue."},
	{"What colour is coal?", "Black."},
	{"What colour is a lemon?", "Yellow."},
	{"How many legs has a spider?", "Eight."},
	{"How many legs has a horse?", "Four."},
	{"How many wings has a bird?", "Two."},
	{"How many days has a week?", "Seven."},
	{"How many months has a year?", "Twelve."},
	{"What do bees make?", "Honey."},
	{"What do hens lay?", "Eggs."},
	{"Where do fish live?", "In the water."},
	{"Where does bread come from?", "From the baker."},
	{"What is ice made of?", "Water."},
	{"What melts in the sun?", "Snow."},
	{"When do owls hunt?", "At night."},
	{"When do leaves fall?", "In autumn."},
	{"Who sails a ship?", "A sailor."},
	{"Who grinds the corn?", "The miller."},
	{"What does a clock show?", "The time."},
	{"What opens a lock?", "A key."},
	{"What burns in a stove?", "Wood."},
	{"What keeps the rain off?", "A roof."},
}

// fact has no key: no fact follows from others, so none is held out.
func fact(d *draw) Lesson {
	f := facts[d.below(len(facts))]
	ask := f.ask
	if d.below(3) == 0 {
		ask = "Tell me: " + strings.ToLower(ask[:1]) + ask[1:]
	}
	return Lesson{Turns: []string{ask, f.answer}}
}

var talks = [][]string{
	{"Hello!", "Hello! What can I do for you?"},
	{"Good morning.", "Good morning! How can I help?"},
	{"How are you?", "I am well, thank you."},
	{"Thank you.", "You are welcome."},
	{"Thanks, that is all.", "Glad to help. Goodbye!"},
	{"Goodbye.", "Goodbye! Come back soon."},
	{"Who are you?", "I am a very small model."},
	{"What can you do?", "I can copy, reverse, count and add a little."},
	{"Are you a person?", "No, I am a small program that learns."},
	{"Can you write a book?", "No, a sentence is enough for me."},
	{"I do not understand.", "Then let us try again, step by step."},
	{"That is wrong.", "I am sorry. I will try again."},
	{"Please be brief.", "I will."},
	{"Are you ready?", "Yes, I am ready."},
	{"What is your name?", "I have no name yet."},
	{"Is it late?", "I cannot see a clock."},
}

// talk is small talk, one exchange or two.
func talk(d *draw) Lesson {
	first := talks[d.below(len(talks))]
	l := Lesson{Turns: first}
	if d.below(3) == 0 {
		second := talks[d.below(len(talks))]
		l.Turns = append(append([]string{}, first...), second...)
	}
	return l
}

// plainText is two or three sentences without roles.
func plainText(d *draw) Lesson {
	s := newScene(d)
	sentences := []string{s.tell(d)}
	for range d.between(1, 2) {
		switch d.below(3) {
		case 0:
			s.where = d.of(places)
			sentences = append(sentences, fmt.Sprintf("Then the %s goes to the %s.", s.who, s.where))
		case 1:
			sentences = append(sentences, fmt.Sprintf("The %s is %s.", s.what, d.of(colours)))
		default:
			sentences = append(sentences, fmt.Sprintf("It is %s in the %s.", d.of([]string{"warm", "cold", "dark", "quiet"}), s.where))
		}
	}
	return Lesson{Key: s.key(), Text: strings.Join(sentences, " ")}
}
