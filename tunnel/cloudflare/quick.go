package cloudflare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// quickTries is how often a request for a quick tunnel is repeated at once, where the service is
// down; not where it says no, because it limits requests.
const quickTries = 3

// quickTimeout is for everything together, one try.
const quickTimeout = 15 * time.Second

// limitedError is the service's wish for fewer requests.
type limitedError struct{ after time.Duration }

func (e *limitedError) Error() string        { return fmt.Sprintf("%v: it answers 429", ErrBusy) }
func (e *limitedError) Is(target error) bool { return target == ErrBusy }

// quickClient asks for quick tunnels.
type quickClient struct {
	url     string
	version string
	http    *http.Client
}

// open makes a tunnel without an account.
func (q *quickClient) open(ctx context.Context) (c Credentials, hostname string, err error) {
	for try := 1; ; try++ {
		c, hostname, err = q.ask(ctx)
		var final *finalError
		if err == nil || errors.As(err, &final) || errors.Is(err, ErrBusy) || try == quickTries || !pause(ctx, backoff(try)) {
			return c, hostname, err
		}
	}
}

// finalError is an answer that another request would not change.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func (q *quickClient) ask(ctx context.Context) (Credentials, string, error) {
	ctx, cancel := context.WithTimeout(ctx, quickTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, q.url+"/tunnel", http.NoBody)
	if err != nil {
		return Credentials{}, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "berth/"+q.version)
	resp, err := q.http.Do(r)
	if err != nil {
		return Credentials{}, "", fmt.Errorf("%w: %w", ErrQuick, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was only read
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return Credentials{}, "", fmt.Errorf("%w: %w", ErrQuick, err)
	}
	if resp.StatusCode == http.StatusTooManyRequests {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return Credentials{}, "", &limitedError{after: time.Duration(max(seconds, 0)) * time.Second}
	}
	c, hostname, err := readQuick(resp.StatusCode, body)
	if err != nil && resp.StatusCode < http.StatusInternalServerError {
		err = &finalError{err}
	}
	return c, hostname, err
}

// readQuick reads the service's answer.
func readQuick(status int, body []byte) (Credentials, string, error) {
	var answer struct {
		Success bool
		Result  struct {
			ID, Hostname string
			AccountTag   string `json:"account_tag"`
			Secret       []byte
		}
		Errors []struct {
			Code    int
			Message string
		}
	}
	if json.Unmarshal(body, &answer) != nil {
		return Credentials{}, "", fmt.Errorf("%w: status %d and %s instead of JSON", ErrQuick, status, prefix(body))
	}
	if !answer.Success || answer.Result.ID == "" {
		why := "no reason given"
		if len(answer.Errors) > 0 {
			why = fmt.Sprintf("%s (code %d)", answer.Errors[0].Message, answer.Errors[0].Code)
		}
		return Credentials{}, "", fmt.Errorf("%w: status %d: %s", ErrQuick, status, why)
	}
	hostname := strings.TrimSuffix(strings.TrimPrefix(answer.Result.Hostname, "https://"), "/")
	c, err := newCredentials(answer.Result.AccountTag, answer.Result.ID, "", answer.Result.Secret)
	if err != nil || !ValidHostname(hostname) {
		return Credentials{}, "", fmt.Errorf("%w: its answer lacks a name or a secret", ErrQuick)
	}
	return c, hostname, nil
}

// prefix shows the beginning of an answer that is not what it should be.
func prefix(body []byte) string {
	const shown = 40
	text := strings.Join(strings.Fields(string(body[:min(len(body), shown)])), " ")
	return strconv.Quote(text)
}

// ValidHostname says whether a name can be a public hostname. It ends up in lines that guests
// paste into a shell.
func ValidHostname(name string) bool {
	if len(name) > 253 || !strings.Contains(name, ".") {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		ok := label != "" && len(label) <= 63 && label[0] != '-' && label[len(label)-1] != '-'
		if !ok || strings.Trim(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return false
		}
	}
	return true
}
