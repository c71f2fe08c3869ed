// Package tui is the host's screen: who uses this machine, how, and for how long still, and
// the keys that act on it.
//
// It promises that nothing blocks it: Update does no I/O, every question to the gateway is
// a command that comes back as a message. Drawing is pure, so that the screen at one moment
// is a function of the model alone. Text that came from anybody else passes through clean
// before it is drawn, so that it can neither move the cursor nor fake the screen.
//
// It knows the gateway only by the interfaces of host.go, which the server itself and its
// control client both satisfy: the screen is the same in `berth up`, in `berth tui` and over
// ssh. Start at model.go; update.go is what happens, view.go what is seen.
package tui
