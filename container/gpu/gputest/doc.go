// Package gputest has GPUs for machines without any: Fake, a driver in memory; Library, which
// builds the simulated NVML that the real program loads; and the suite that both must pass. The
// cards of both are described by a State, whose JSON is what bin/sim holds examples of.
package gputest
