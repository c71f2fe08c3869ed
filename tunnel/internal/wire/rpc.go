package wire

import (
	"fmt"
	"io"
)

// Kind is the variant of an RPC message.
type Kind uint16

// The message kinds that matter; others are read and ignored.
const (
	KindUnimplemented Kind = 0
	KindAbort         Kind = 1
	KindCall          Kind = 2
	KindReturn        Kind = 3
	KindFinish        Kind = 4
	KindResolve       Kind = 5
	KindRelease       Kind = 6
	KindBootstrap     Kind = 8
	KindDisembargo    Kind = 13
)

// Interface ids, as they appear in calls.
const (
	Registrar    uint64 = 0xf71695ec7fe85497
	Configurator uint64 = 0xb48edfbdaa25db04
	Sessions     uint64 = 0x839445a59fb01686
)

// Methods of Registrar and Configurator.
const (
	MethodRegister    uint16 = 0
	MethodUnregister  uint16 = 1
	MethodLocalConfig uint16 = 2
	MethodUpdate      uint16 = 0 // of Configurator
)

// ExceptionKind says why a call failed.
type ExceptionKind uint16

// Kinds of exceptions.
const (
	ExceptionFailed        ExceptionKind = 0
	ExceptionOverloaded    ExceptionKind = 1
	ExceptionDisconnected  ExceptionKind = 2
	ExceptionUnimplemented ExceptionKind = 3
)

// ExceptionError is a failed call, or the reason of an abort. It is an error.
type ExceptionError struct {
	Kind   ExceptionKind
	Reason string
}

// Error returns the edge's own words.
func (e *ExceptionError) Error() string { return fmt.Sprintf("rpc exception: %s", e.Reason) }

// Target is what a call is made on: a capability that was received, or the one that an
// unanswered question will return.
type Target struct {
	Promised bool
	ID       uint32 // capability, or question when Promised
}

// Call is the head of a call.
type Call struct {
	Question  uint32
	Interface uint64
	Method    uint16
	Target    Target
}

// Body is the parameters or the results of a call.
type Body interface {
	encode(w *builder, at int)
	decode(v view) error
}

// Message is one RPC message. Fields that do not belong to its kind are zero.
type Message struct {
	Kind       Kind
	ID         uint32 // question of a bootstrap, call or finish; answered question of a return
	Call       Call
	Exception  *ExceptionError // of a return or an abort
	Capability *uint32         // first capability of a return's table
	KeepCaps   bool            // of a finish

	payload view
}

// Decode reads the parameters of a call or the results of a return.
func (m *Message) Decode(b Body) error { return b.decode(m.payload) }

// Read reads one message. It returns io.EOF when the stream ends between messages and an error
// of class ErrMalformed when the bytes cannot be trusted; after either the stream is finished.
func Read(r io.Reader) (*Message, error) {
	raw, err := readMessage(r)
	if err != nil {
		return nil, err
	}
	root, err := raw.root()
	if err != nil {
		return nil, fmt.Errorf("rpc message: %w", err)
	}
	m := &Message{Kind: Kind(root.u16(0))}
	if m.Kind == KindUnimplemented {
		return m, nil // an echo of something we sent
	}
	body, err := root.sub(0)
	if err != nil {
		return nil, fmt.Errorf("rpc message: %w", err)
	}
	m.ID = body.u32(0)
	switch m.Kind {
	case KindCall:
		err = m.readCall(body)
	case KindReturn:
		err = m.readReturn(body)
	case KindAbort:
		m.Exception, err = readException(body)
	case KindFinish:
		m.KeepCaps = body.bit(32)
	default: // nothing in it that this side reads
	}
	if err != nil {
		return nil, fmt.Errorf("rpc message: %w", err)
	}
	return m, nil
}

func (m *Message) readCall(body view) error {
	m.Call = Call{Question: m.ID, Method: body.u16(4), Interface: body.u64(8)}
	target, err := body.sub(0)
	if err != nil {
		return err
	}
	m.Call.Target.ID = target.u32(0)
	switch tag := target.u16(4); tag {
	case 0:
	case 1:
		promised, err := target.sub(0)
		if err != nil {
			return err
		}
		m.Call.Target = Target{Promised: true, ID: promised.u32(0)}
	default:
		return fmt.Errorf("%w: call target %d", ErrMalformed, tag)
	}
	payload, err := body.sub(1)
	if err != nil {
		return err
	}
	m.payload, err = payload.sub(0)
	return err
}

func (m *Message) readReturn(body view) error {
	sub, err := body.sub(0)
	if err != nil {
		return err
	}
	switch tag := body.u16(6); tag {
	case 0:
		return m.readResults(sub)
	case 1:
		m.Exception, err = readException(sub)
		return err
	default:
		return fmt.Errorf("%w: return variant %d", ErrMalformed, tag)
	}
}

// readResults reads a payload. With a capability table the content is a capability pointer, and
// only the table counts.
func (m *Message) readResults(payload view) error {
	table, err := payload.list(1)
	if err != nil {
		return err
	}
	if len(table) > 0 {
		if tag := table[0].u16(0); tag != 1 && tag != 2 {
			return fmt.Errorf("%w: capability variant %d", ErrMalformed, tag)
		}
		id := table[0].u32(4)
		m.Capability = &id
		return nil
	}
	m.payload, err = payload.sub(0)
	return err
}

func readException(v view) (*ExceptionError, error) {
	reason, err := v.text(0)
	return &ExceptionError{Kind: ExceptionKind(v.u16(4)), Reason: reason}, err
}

// start begins a message and returns the position of its only pointer.
func start(w *builder, kind Kind) int {
	data, ptr := w.structure(w.alloc(1), 1, 1)
	le.PutUint16(w.b[data:], uint16(kind))
	return ptr
}

// Bootstrap asks the peer for its one capability.
func Bootstrap(question uint32) []byte {
	w := &builder{}
	data, _ := w.structure(start(w, KindBootstrap), 1, 1)
	le.PutUint32(w.b[data:], question)
	return w.frame()
}

// EncodeCall writes a call.
func EncodeCall(c Call, params Body) []byte {
	w := &builder{}
	data, ptr := w.structure(start(w, KindCall), 3, 3)
	le.PutUint32(w.b[data:], c.Question)
	le.PutUint16(w.b[data+4:], c.Method)
	le.PutUint64(w.b[data+8:], c.Interface)
	target, promised := w.structure(ptr, 1, 1)
	if c.Target.Promised {
		le.PutUint16(w.b[target+4:], 1)
		at, _ := w.structure(promised, 1, 1)
		le.PutUint32(w.b[at:], c.Target.ID)
	} else {
		le.PutUint32(w.b[target:], c.Target.ID)
	}
	_, payload := w.structure(ptr+8, 0, 2)
	params.encode(w, payload)
	return w.frame()
}

// startReturn begins a return and returns the position of its payload or exception pointer.
func startReturn(w *builder, answer uint32, variant uint16) int {
	data, ptr := w.structure(start(w, KindReturn), 2, 1)
	le.PutUint32(w.b[data:], answer)
	w.b[data+4] = 1 // the parameters' capabilities are kept: there are none
	le.PutUint16(w.b[data+6:], variant)
	return ptr
}

// EncodeResults answers a call.
func EncodeResults(answer uint32, results Body) []byte {
	w := &builder{}
	_, payload := w.structure(startReturn(w, answer, 0), 0, 2)
	results.encode(w, payload)
	return w.frame()
}

// EncodeCapability answers a bootstrap with the sender's capability id.
func EncodeCapability(answer, id uint32) []byte {
	w := &builder{}
	_, payload := w.structure(startReturn(w, answer, 0), 0, 2)
	le.PutUint64(w.b[payload:], 3) // capability 0 of the table that follows
	entry := w.structures(payload+8, 1, 1, 1)
	le.PutUint16(w.b[entry:], 1) // hosted by the sender
	le.PutUint32(w.b[entry+4:], id)
	return w.frame()
}

// EncodeException answers a call or bootstrap with a failure.
func EncodeException(answer uint32, e ExceptionError) []byte {
	w := &builder{}
	e.encode(w, startReturn(w, answer, 1))
	return w.frame()
}

// EncodeAbort ends the RPC connection with a reason.
func EncodeAbort(e ExceptionError) []byte {
	w := &builder{}
	e.encode(w, start(w, KindAbort))
	return w.frame()
}

func (e *ExceptionError) encode(w *builder, at int) {
	data, ptr := w.structure(at, 1, 1)
	le.PutUint16(w.b[data+4:], uint16(e.Kind))
	w.text(ptr, e.Reason)
}

// Finish says that a question's answer was read. Its capabilities stay in use.
func Finish(question uint32) []byte {
	w := &builder{}
	data, _ := w.structure(start(w, KindFinish), 1, 0)
	le.PutUint32(w.b[data:], question)
	w.b[data+4] = 1
	return w.frame()
}
