// Package gatewaytest runs a real gateway on loopback for tests: real SSH, the real link
// book, the real agent as a process of its own; only Docker is left out. Its Boxes is the
// twin of container.Engine: a box is an agent process with a directory for a home, and it
// can be made to fail on demand.
//
// A test package that uses it calls Main from its TestMain: the test binary is started
// again as the agent.
package gatewaytest
