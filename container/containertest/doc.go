// Package containertest is a twin of container.Engine that needs no Docker, and the suite
// that both must pass. The twin keeps what Docker would: which boxes, networks and
// workspaces there are. Nothing runs in its boxes; gateway/gatewaytest has some that do.
package containertest
