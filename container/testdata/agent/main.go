// Command agent is a small stand-in for cmd/berth-agent: it sets a box up like the real one,
// and then runs whatever the test on the other end of the socket asks for.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/berth-gpu/berth/container/agent"
)

func main() {
	if err := run(strings.Join(os.Args[1:], " ")); err != nil {
		fmt.Fprintln(os.Stderr, "berth-agent:", err)
		os.Exit(1)
	}
}

func run(stage string) error {
	switch stage {
	case "":
		c, err := agent.LoadConfig(agent.ConfigPath)
		if err != nil {
			return err
		}
		if err := agent.Setup(c); err != nil {
			return err
		}
		return agent.Become(c, []string{agent.BinDir + "/berth-agent", "serve"})
	case "serve":
		return serve()
	case "status": // what a program started by the agent may do
		data, err := os.ReadFile("/proc/self/status")
		fmt.Print(string(data))
		return err
	}
	return fmt.Errorf("unknown stage %q", stage)
}

func serve() error {
	c, err := agent.LoadConfig(agent.ConfigPath)
	if err != nil {
		return err
	}
	if err := agent.Harden(); err != nil {
		return err
	}
	var conn net.Conn
	for {
		var err error
		if conn, err = net.Dial("unix", agent.Socket); err == nil {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var argv []string
		if err := in.Decode(&argv); err != nil {
			return err
		}
		var answer struct {
			Out  string
			Code int
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+c.Home)
		text, err := cmd.CombinedOutput()
		answer.Out = string(text)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			answer.Code = exit.ExitCode()
		} else if err != nil {
			answer.Out, answer.Code = err.Error(), 127
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}
