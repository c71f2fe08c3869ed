package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const commandsPage = "../../docs/commands.md"

var writeDocs = flag.Bool("docs", false, "rewrite docs/commands.md")

// TestCommandsPage keeps the page of commands what the program itself says; `make docs` writes it.
func TestCommandsPage(t *testing.T) {
	page := commandsText(newRoot(nil))
	if *writeDocs {
		if err := os.WriteFile(commandsPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(commandsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Error("docs/commands.md is not what the program says: run `make docs`")
	}
}

// commandsText is the page: every command with its flags.
func commandsText(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(`# Commands

Written by ` + "`make docs`" + ` from the program itself. Each flag may also be set as ` + "`BERTH_NAME`" + ` (the flag's name in capitals, ` + "`_`" + ` for
` + "`-`" + `) or as ` + "`name = value`" + ` in the config file; the command line comes first, then the environment, then the file.
Exit codes: 0, 1 failed, 2 wrong usage.

## Every command
`)
	writeFlags(&b, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		if cmd.Hidden || !cmd.IsAvailableCommand() {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n    %s\n", cmd.CommandPath(), sentence(cmp.Or(cmd.Long, cmd.Short)), cmd.UseLine())
		writeFlags(&b, cmd.LocalNonPersistentFlags())
	}
	return b.String()
}

// valueNames are how the page calls the types of flags.
var valueNames = map[string]string{
	"string": " TEXT", "stringSlice": " LIST", "int": " N", "int64": " N", "float64": " N", "duration": " DURATION", "size": " SIZE",
	"SRC:DST[:rw]": " SRC:DST[:rw]",
}

func writeFlags(b *strings.Builder, flags *pflag.FlagSet) {
	first := true
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString("\n| flag | |\n|---|---|\n")
			first = false
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		name += valueNames[f.Value.Type()]
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.ReplaceAll(flagText(f), "|", `\|`))
	})
}

// flagText is a flag's help. Whatever depends on who builds the page is said in general words.
func flagText(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]":
		return strings.ReplaceAll(f.Usage, userConfig(), "~/.config/berth/config.toml")
	case defaultState():
		return f.Usage + " (default: /var/lib/berth for root, otherwise ~/.local/state/berth)"
	}
	return f.Usage + " (default: " + f.DefValue + ")"
}

// sentence ends a line of help as prose does.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}
