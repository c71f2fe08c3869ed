package tunneltest

import (
	"errors"
	"fmt"
	"io"

	"github.com/berth-gpu/berth/tunnel/internal/wire"
)

// control serves the registration RPC on a control stream.
type control struct {
	conn       *Conn
	rw         io.ReadWriter
	open       map[uint32]bool // answered, not yet finished
	booted     bool
	registered bool
	goodbye    bool
	asked      bool // we asked the connector for its capability
	told       bool // and it answered
}

// errBye ends a control stream in good order.
var errBye = errors.New("unregistered")

// serveControl runs until the stream ends.
func serveControl(c *Conn, rw io.ReadWriter) error {
	s := &control{conn: c, rw: rw, open: map[uint32]bool{}}
	for {
		m, err := wire.Read(rw)
		if err != nil {
			if errors.Is(err, wire.ErrMalformed) {
				s.violate("control stream: %v", err)
			}
			return s.ended(err)
		}
		if err := s.handle(m); err != nil {
			return err
		}
	}
}

func (s *control) violate(format string, args ...any) { s.conn.edge.violate(format, args...) }

// ended looks at how the connector left.
func (s *control) ended(err error) error {
	if !s.goodbye {
		return err
	}
	if len(s.open) > 1 { // the goodbye itself may go unfinished
		s.violate("%d answers were never finished", len(s.open))
	}
	if s.asked && !s.told {
		s.violate("a bootstrap from the edge was not answered")
	}
	return errBye
}

func (s *control) handle(m *wire.Message) error {
	switch m.Kind {
	case wire.KindBootstrap:
		if s.booted {
			s.violate("second bootstrap")
		}
		s.booted = true
		s.open[m.ID] = true
		return s.send(wire.EncodeCapability(m.ID, 0))
	case wire.KindCall:
		return s.call(m)
	case wire.KindFinish:
		if !s.open[m.ID] {
			s.violate("finish of question %d, which is not open", m.ID)
		}
		if m.ID == 0 && !m.KeepCaps {
			s.violate("finish released the capability it goes on using")
		}
		delete(s.open, m.ID)
	case wire.KindReturn:
		if !s.asked || m.Exception == nil || m.Exception.Kind != wire.ExceptionUnimplemented {
			s.violate("return of %d: %+v", m.ID, m.Exception)
		}
		s.told = true
	case wire.KindAbort:
		return m.Exception
	default:
		s.violate("rpc message of kind %d", m.Kind)
	}
	return nil
}

func (s *control) send(frame []byte) error {
	if g := s.conn.edge.opts.Garble; g != nil {
		frame = g(frame)
	}
	_, err := s.rw.Write(frame)
	return err
}

func (s *control) call(m *wire.Message) error {
	if !s.booted || m.Call.Target.ID != 0 {
		s.violate("call on capability %+v", m.Call.Target)
	}
	if s.open[m.ID] {
		s.violate("question %d was asked twice", m.ID)
	}
	s.open[m.ID] = true
	if m.Call.Interface != wire.Registrar {
		return s.send(wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionUnimplemented, Reason: "no such interface"}))
	}
	switch m.Call.Method {
	case wire.MethodRegister:
		return s.register(m)
	case wire.MethodUnregister:
		if !s.registered {
			s.violate("unregister before register")
		}
		s.goodbye = true
		s.conn.edge.unregister(s.conn)
		return s.send(wire.EncodeResults(m.ID, &wire.Empty{}))
	case wire.MethodLocalConfig:
		return s.localConfig(m)
	}
	return s.send(wire.EncodeException(m.ID, wire.ExceptionError{Kind: wire.ExceptionUnimplemented, Reason: "no such method"}))
}

func (s *control) register(m *wire.Message) error {
	if s.registered {
		s.violate("second registration on one connection")
	}
	var r Registration
	if err := m.Decode(&r); err != nil {
		s.violate("registration: %v", err)
		return err
	}
	a, answer := s.conn.edge.register(r, s.conn)
	if !answer {
		return nil
	}
	s.registered = a.Cause == ""
	if err := s.send(wire.EncodeResults(m.ID, &a)); err != nil || !s.registered {
		return err
	}
	s.asked = true
	if err := s.send(wire.Bootstrap(0)); err != nil {
		return err
	}
	s.conn.edge.takeIn(s.conn)
	return nil
}

func (s *control) localConfig(m *wire.Message) error {
	e := s.conn.edge
	var conf wire.LocalConfig
	if err := m.Decode(&conf); err != nil {
		return err
	}
	if s.conn.Registration.Index != 0 || e.opts.Managed || !s.registered {
		s.violate("a local configuration from index %d", s.conn.Registration.Index)
	}
	e.mu.Lock()
	e.configs = append(e.configs, conf.JSON)
	e.changed()
	e.mu.Unlock()
	return s.send(wire.EncodeResults(m.ID, &wire.Empty{}))
}

// register decides about a registration; false means that it stays unanswered.
func (e *Edge) register(r Registration, c *Conn) (Answer, bool) {
	e.inspect(r)
	if e.opts.Decide != nil {
		a, answer := e.opts.Decide(r, c)
		if answer && a.Cause == "" && a.Connection == nil {
			a.Connection, a.Place = make([]byte, 16), "TST"
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		e.note(r, c)
		return a, answer
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.decide(r, c)
	e.note(r, c)
	return a, true
}

// note keeps a registration. The caller holds mu.
func (e *Edge) note(r Registration, c *Conn) {
	e.regs = append(e.regs, r)
	c.Registration = r
	e.changed()
}

// takeIn puts a registered connection into turn.
func (e *Edge) takeIn(c *Conn) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.conns = append(e.conns, c)
	e.changed()
}

func (e *Edge) unregister(c *Conn) {
	e.retire(c)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unregs++
	e.changed()
}

// String names a connection in test output.
func (c *Conn) String() string {
	kind := "http2"
	if c.QUIC {
		kind = "quic"
	}
	return fmt.Sprintf("connection %d by %s at %s", c.Registration.Index, kind, c.Addr)
}
