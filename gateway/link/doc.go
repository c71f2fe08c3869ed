// Package link holds what a link is: its token, its limits, its states, and the
// book in which every change is durable before anybody acts on it.
//
// It promises that a link is claimed by at most one guest, that a token can be
// recognised but never read back, and that what it answered before a crash it
// answers after it. It does no networking, knows no SSH and no Docker: the
// gateway proves who a guest is and asks the book what follows.
package link
