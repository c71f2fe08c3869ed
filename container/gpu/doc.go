// Package gpu knows the host's NVIDIA cards: what they are and how they do (Monitor), who may
// have which (Admit), whose processes are on them (Owner) and what becomes of a guest who takes
// more than their share (Guard). It is the only place that talks to NVML.
//
// A host without a driver, a board without NVML and a program built without C are ordinary:
// they have no cards. A card that is lost, or a driver that never answers, costs nobody else
// anything: every call runs in a goroutine of its own, which may stay blocked for ever.
//
// Card numbers change when a card falls off the bus; UUIDs do not, so everything that is
// remembered names cards by UUID.
package gpu
