#!/bin/sh
# Makes this machine able to run Berth: a Docker engine that answers, and what the guest
# image is built with. Only what is missing is installed, so a second run changes nothing.
#
#	container/setup.sh          for `make up`
#	container/setup.sh tests    also every tool that `make test` drives
set -eu

log=/var/log/berth-dockerd.log
patience=90 # seconds for a Docker engine to answer
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo

say() { echo "setup: $*"; }
fail() {
	echo "setup: error: $1" >&2
	echo "setup: hint: $2" >&2
	exit 1
}

# missing names those of the packages that are not installed.
missing() {
	for package; do
		dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed$' ||
			printf '%s ' "$package"
	done
}

# install adds packages of the distribution; apt shows what it does as it goes.
install() {
	command -v apt-get >/dev/null || fail "cannot install here: $*" \
		"this script knows apt only; install a Docker engine with your package manager and start it"
	if [ -z "${updated:-}" ]; then
		say "reading the package lists"
		$sudo apt-get -q update || fail "the package lists cannot be read" "check the network and /etc/apt/sources.list"
		updated=yes
	fi
	say "installing $*"
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=300 install "$@" </dev/null || fail "installing failed" "see apt's message above"
}

answers() { $sudo docker version >/dev/null 2>&1; }

# runs tells whether a process is alive and, where a name is given, has it.
runs() {
	awk -v want="${2:-}" '$1 == "Name:" { name = $2 } $1 == "State:" { state = $2 }
		END { exit !((want == "" || name == want) && state != "Z") }' "/proc/${1:-none}/status" 2>/dev/null
}

# wait_for_docker waits until the engine answers or is seen to be dead.
wait_for_docker() {
	waited=0
	until answers; do
		[ "$waited" -lt "$patience" ] || return 1
		if [ -n "${daemon:-}" ] && ! runs "$daemon"; then return 1; fi
		sleep 1
		waited=$((waited + 1))
		[ $((waited % 5)) != 2 ] || say "waiting for Docker to answer, ${waited} s"
	done
}

# start_by_hand runs the daemon where no service manager does: a bare container or a small VM.
start_by_hand() {
	if ! grep -q '^[^ ]* /sys/fs/cgroup[^ ]* cgroup' /proc/mounts; then
		install cgroupfs-mount
		$sudo cgroupfs-mount
	fi
	# A pid file from before a reboot may name a process that is something else by now.
	for name in docker:dockerd docker/containerd/containerd:containerd; do
		file=/var/run/${name%:*}.pid
		if ! runs "$($sudo cat "$file" 2>/dev/null || true)" "${name#*:}"; then
			$sudo rm -f "$file"
		fi
	done
	if [ -e /var/run/docker.pid ]; then return 0; fi # it is starting
	say "starting dockerd in the background, log in $log"
	$sudo sh -c "setsid dockerd >>$log 2>&1 </dev/null & echo \$! >/var/run/berth-dockerd.pid"
	daemon=$($sudo cat /var/run/berth-dockerd.pid)
}

start_docker() {
	if [ -d /run/systemd/system ]; then
		say "starting the docker service"
		$sudo systemctl start docker || fail "the docker service does not start" "journalctl -u docker -n 50"
		hint="journalctl -u docker -n 50"
	elif [ "$(cat /proc/1/comm)" = init ] && [ -x /etc/init.d/docker ]; then
		say "starting the docker service"
		$sudo service docker start || fail "the docker service does not start" "see /var/log/docker.log"
		hint="see /var/log/docker.log"
	else
		start_by_hand
		hint="see $log"
	fi
	wait_for_docker && return 0
	[ -z "${daemon:-}" ] || $sudo grep -v level=info "$log" | tail -n 5 >&2 || true
	fail "Docker does not answer after $waited s" "$hint"
}

if ! answers; then
	if [ -n "${DOCKER_HOST:-}" ]; then
		fail "no Docker engine answers at DOCKER_HOST" "start it, or unset DOCKER_HOST to use this machine's"
	fi
	command -v dockerd >/dev/null && command -v docker >/dev/null || install docker.io iptables
	answers || start_docker
fi

# The guest image is built from the distribution's packages, and the program reaches the GPU's
# driver through C.
if command -v apt-get >/dev/null; then
	command -v debootstrap >/dev/null || install debootstrap
	command -v cc >/dev/null || install gcc libc6-dev
fi

if [ "${1:-}" = tests ]; then
	# gcc and libc6-dev are for the race detector and the simulated GPU; the others are the clients the tests drive.
	needed=$(missing gcc libc6-dev openssh-client rsync tmux busybox-static python3 python3-paramiko \
		lftp sshfs dropbear-bin putty-tools netcat-openbsd curl iproute2 procps psmisc)
	# shellcheck disable=SC2086 # a list of names
	[ -z "$needed" ] || install $needed
fi
say "Docker $($sudo docker version --format '{{.Server.Version}}') answers"
