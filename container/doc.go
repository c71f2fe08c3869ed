// Package container is the only room that talks to Docker. It makes the isolated
// box of one link, hands out streams to the agent inside it, and takes everything
// away again, item by item.
//
// It promises that all it makes is labelled, that nothing unlabelled is ever
// touched, that Docker's errors leave as classes of its own (see errors in
// engine.go), and that no call waits for ever. It does not know links, tokens or SSH.
// Next: spec.go for what a box is, engine.go for the verbs, agent for the inner side.
package container
