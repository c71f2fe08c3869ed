// Package wire reads and writes the bytes of the tunnel control protocol: the Cap'n Proto
// encoding of the few structs it uses and the RPC messages that carry them. The connector and
// the fake edge of the tests share it; both keep their own list of names and rules.
//
// Readers accept any number of segments and far pointers, check every bound, and never hold more
// than one message of at most MaxMessage bytes. Nothing here does I/O of its own beyond reading
// one message, and nothing here knows about connections.
package wire
