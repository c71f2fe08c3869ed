package container

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moby/moby/api/types/mount"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func testPlace() place {
	return place{
		State: "s", Bin: "/state/agent/1", Run: "/state/run/abc", Network: "net1", Volume: "berth-abc", Home: "/home/guest",
		Files: []etc{{"/state/run/abc/passwd", "/etc/passwd"}},
	}
}

// TestRequestGolden shows every field of a request, so that none changes unseen.
func TestRequestGolden(t *testing.T) {
	for name, s := range map[string]Spec{
		"plain": {Link: "abc", Image: "debian:12", Network: Internet},
		"all": {
			Link: "abc", Hostname: "gpu", Image: "cuda:12", CPUs: 2.5, Memory: 8 << 30, SHM: 2 << 30, PIDs: 2048,
			Network: LAN, Mounts: []Mount{{"/data", "/data/", false}, {"/out", "/out", true}}, Workspace: "mine",
			Root: true, Writable: true, Runtime: "runsc", Devices: []string{"/dev/nvidia0"}, Env: []string{"A=b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(request(s, testPlace()), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			file := filepath.Join("testdata", "request-"+name+".golden")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("differs from %s; run go test -update and read the diff:\n%s", file, got)
			}
		})
	}
}

func TestRequestIsHardened(t *testing.T) {
	for _, s := range []Spec{
		{Network: Internet}, {Network: NoNet}, {Network: LAN, Root: true, Writable: true}, {Network: Internet, Runtime: "runsc"},
	} {
		r := request(s, testPlace())
		h := r.HostConfig
		if h.Privileged || h.PidMode != "" || h.IpcMode != "private" || h.UTSMode != "" || h.NetworkMode == "host" ||
			!slices.Equal(h.CapDrop, []string{"ALL"}) || !slices.Equal(h.SecurityOpt, []string{"no-new-privileges:true"}) ||
			h.PidsLimit == nil || *h.PidsLimit <= 0 || h.OomScoreAdj <= 0 || h.LogConfig.Config["max-size"] == "" ||
			h.PublishAllPorts || len(h.PortBindings) > 0 || h.RestartPolicy.Name != "no" {
			t.Errorf("%+v: %+v", s, h)
		}
		if h.ReadonlyRootfs == s.Writable {
			t.Errorf("%+v: read-only root is %v", s, h.ReadonlyRootfs)
		}
		for _, m := range h.Mounts {
			if m.Type == mount.TypeBind && !m.ReadOnly {
				t.Errorf("%+v: %s can be written", s, m.Target)
			}
		}
		for _, bad := range []string{"SYS_ADMIN", "NET_RAW", "SYS_PTRACE", "DAC_READ_SEARCH", "SYS_MODULE", "MKNOD", "SYS_CHROOT"} {
			if slices.Contains(h.CapAdd, bad) {
				t.Errorf("%+v: has %s", s, bad)
			}
		}
		if s.Network == NoNet && slices.Contains(h.CapAdd, "NET_ADMIN") {
			t.Error("NET_ADMIN without a network")
		}
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		s    Spec
		want int64
	}{
		{Spec{}, 1 << 30}, {Spec{SHM: 5}, 5}, {Spec{Memory: 512 << 20}, 256 << 20}, {Spec{Memory: 64 << 30}, 1 << 30},
	} {
		if got := shmSize(c.s); got != c.want {
			t.Errorf("shm of %+v: got %d, want %d", c.s, got, c.want)
		}
	}
	if got := resources(Spec{}, place{OwnLimits: true}).Ulimits; len(got) != 1 {
		t.Errorf("limits that the daemon cannot raise: %v", got)
	}
}

func TestCheckTarget(t *testing.T) {
	for target, ok := range map[string]bool{
		"/data": true, "/home/guest/data": true, "/mnt/x/": true, "/devices": true, "/tmp/x": true,
		"": false, "data": false, "/": false, "//": false, "/x/..": false, "/proc": false, "/proc/sys": false, "/sys/x": false,
		"/dev/shm": false, "/etc": false, "/etc/passwd": false, "/.berth": false, "/.berth/run/x": false, "/tmp": false,
	} {
		if err := checkTarget(target); (err == nil) != ok {
			t.Errorf("%q: %v", target, err)
		}
	}
}
