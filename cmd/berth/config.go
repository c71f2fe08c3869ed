package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const systemConfig = "/etc/berth/config.toml"

// configure gives every flag of cmd its value, from the first of these that has one:
//
//  1. the flag on the command line
//  2. BERTH_NAME in the environment, NAME being the flag's in capitals, with _ for -
//  3. name = value in the config file
//  4. the default
func (a *app) configure(cmd *cobra.Command) error {
	if err := fromEnv(cmd.Flags(), "config"); err != nil {
		return err
	}
	values, path, err := readConfig(a.file)
	if err != nil {
		return err
	}
	if err := checkKeys(values, cmd.Root()); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	return apply(cmd.Flags(), values, path)
}

// apply fills the flags that the command line left alone.
func apply(flags *pflag.FlagSet, values map[string]any, path string) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		if failed != nil || f.Changed {
			return
		}
		if failed = fromEnv(flags, f.Name); failed != nil || f.Changed {
			return
		}
		if v, ok := values[f.Name]; ok {
			if err := set(flags, f.Name, v); err != nil {
				failed = fmt.Errorf("config file %s: %s: %w", path, f.Name, err)
			}
		}
	})
	return failed
}

// fromEnv sets one flag from its variable, unless the command line set it.
func fromEnv(flags *pflag.FlagSet, name string) error {
	f := flags.Lookup(name)
	if f == nil || f.Changed {
		return nil
	}
	variable := "BERTH_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	v, ok := os.LookupEnv(variable)
	if !ok {
		return nil
	}
	if err := flags.Set(name, v); err != nil {
		return usagef("%s: %w", variable, err)
	}
	return nil
}

// set gives a flag a value of the config file; a list sets it once for each element.
func set(flags *pflag.FlagSet, name string, v any) error {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		if err := flags.Set(name, fmt.Sprint(one)); err != nil {
			return err
		}
	}
	return nil
}

// readConfig reads the config file: the one that was named, which has to be there, or the
// first of the usual ones.
func readConfig(named string) (map[string]any, string, error) {
	paths := []string{named}
	if named == "" {
		paths = []string{userConfig(), systemConfig}
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) && named == "" {
			continue
		}
		if err != nil {
			return nil, path, fmt.Errorf("read config file: %w", err)
		}
		values := map[string]any{}
		if err := toml.Unmarshal(data, &values); err != nil {
			return nil, path, fmt.Errorf("config file %s: %w", path, err)
		}
		return values, path, nil
	}
	return nil, "", nil
}

// checkKeys refuses a key that no command knows: a misspelt limit must not pass unnoticed.
func checkKeys(values map[string]any, root *cobra.Command) error {
	known := map[string]bool{}
	for _, cmd := range append(root.Commands(), root) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
	}
	var unknown []string
	for key := range values {
		if !known[key] || key == "config" || key == "help" {
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	slices.Sort(unknown)
	return fmt.Errorf("unknown key %s", strings.Join(unknown, ", "))
}

// userConfig is the user's own config file.
func userConfig() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return systemConfig
	}
	return filepath.Join(dir, "berth", "config.toml")
}

// defaultState is where links live unless the host says otherwise.
func defaultState() string {
	if os.Geteuid() == 0 {
		return "/var/lib/berth"
	}
	if dir := os.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "berth")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "berth-state"
	}
	return filepath.Join(home, ".local", "state", "berth")
}
