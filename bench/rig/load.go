// Load: a closed loop of clients against one URL, by wrk or by our own driver.

package rig

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Load is the result of a load.
type Load struct {
	Requests int
	Rate     float64 // requests a second
	P50, P99 time.Duration
}

// Target describes a load: the URL, the header fields, the number of connections and the duration. Each connection
// has one request at a time.
type Target struct {
	URL     string
	Headers []string // "Name: value"
	Clients int
	Long    time.Duration
	// URIs are asked for at random in place of the URL's own; none: that one.
	URIs []string
	// Varying are header fields of which each request has one at random, behind the others; none: no further one.
	Varying []string
	// Together are so many requests in one write of a client; 0: one.
	Together int
}

// SetHeaders sets the target's header fields.
func (a Target) SetHeaders(h http.Header) {
	for _, field := range a.Headers {
		name, value, _ := strings.Cut(field, ": ")
		h.Set(name, value)
	}
}

// Driver runs a load. An answer other than 200 is an error.
type Driver struct {
	Name string
	Run  func(ctx context.Context, a Target) (Load, error)
}

// FindDriver returns wrk if it is installed, because wrk uses less of the machine that it shares with the server.
// In a quick run it returns the bench's own driver, because wrk takes at least a second.
func (r *Run) FindDriver() Driver {
	if r.Quick {
		return Driver{"the bench's own driver", ownLoad}
	}
	if _, err := exec.LookPath("wrk"); err == nil {
		return Driver{"wrk, one thread", wrk}
	}
	return Driver{"the bench's own driver (wrk is not installed)", ownLoad}
}

var (
	wrkRate    = regexp.MustCompile(`(?m)^Requests/sec: +([0-9.]+)`)
	wrkCount   = regexp.MustCompile(`(?m)^ +([0-9]+) requests in`)
	wrkLatency = regexp.MustCompile(`(?m)^ +(50|99)% +([0-9.]+)(us|ms|s)\b`)
	wrkBad     = regexp.MustCompile(`(?m)^ +(Non-2xx|Socket errors).*$`)
)

func wrk(ctx context.Context, a Target) (Load, error) {
	args := []string{"-t1", fmt.Sprintf("-c%d", a.Clients), fmt.Sprintf("-d%ds", max(1, int(a.Long/time.Second))), "--latency", "--timeout", "10s"}
	for _, h := range a.Headers {
		args = append(args, "-H", h)
	}
	script, done, err := wrkScript(a)
	if err != nil {
		return Load{}, err
	}
	defer done()
	out, err := exec.CommandContext(ctx, "wrk", append(append(args, a.URL), script...)...).CombinedOutput()
	if err != nil {
		return Load{}, fmt.Errorf("wrk: %w: %s", err, out)
	}
	if bad := wrkBad.Find(out); bad != nil {
		return Load{}, fmt.Errorf("wrk: %s", bad)
	}
	rate, count := wrkRate.FindSubmatch(out), wrkCount.FindSubmatch(out)
	if rate == nil || count == nil {
		return Load{}, fmt.Errorf("wrk said nothing we know: %s", out)
	}
	var l Load
	l.Rate, _ = strconv.ParseFloat(string(rate[1]), 64)
	l.Requests, _ = strconv.Atoi(string(count[1]))
	for _, m := range wrkLatency.FindAllSubmatch(out, 2) {
		d, err := time.ParseDuration(string(m[2]) + string(m[3]))
		if err != nil {
			return l, err
		}
		if string(m[1]) == "50" {
			l.P50 = d
		} else {
			l.P99 = d
		}
	}
	return l, nil
}

// wrkLines is a script with which wrk requests random lines of a file, several in one write, each with every line of
// a second file. wrk's own requests have their header fields in another order after each start, which no client does.
const wrkLines = `local requests = {}
init = function(args)
  for line in io.lines(args[1]) do
    for field in io.lines(args[2]) do
      if field ~= "" then field = field .. "\r\n" end
      requests[#requests + 1] = string.rep("GET " .. line .. args[4] .. field .. "\r\n", tonumber(args[3]))
    end
  end
end
request = function() return requests[math.random(#requests)] end
`

// wrkScript returns the arguments with which wrk sends different requests, or none if all requests are the same.
// done removes its files.
func wrkScript(a Target) (args []string, done func(), err error) {
	if len(a.URIs) == 0 && len(a.Varying) == 0 && a.Together == 0 {
		return nil, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "bench-wrk-")
	if err != nil {
		return nil, nil, err
	}
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, nil, err
	}
	uris := a.URIs
	if len(uris) == 0 {
		uris = []string{u.RequestURI()}
	}
	script, lines, fields := filepath.Join(dir, "lines.lua"), filepath.Join(dir, "lines"), filepath.Join(dir, "fields")
	err = errors.Join(os.WriteFile(script, []byte(wrkLines), 0o600), os.WriteFile(lines, []byte(strings.Join(uris, "\n")+"\n"), 0o600),
		os.WriteFile(fields, []byte(strings.Join(a.Varying, "\n")+"\n"), 0o600))
	return []string{"-s", script, "--", lines, fields, fmt.Sprint(max(1, a.Together)), rest(a, u)}, func() { _ = os.RemoveAll(dir) }, err
}

// rest returns the part of a request that follows its address, up to the field that varies.
func rest(a Target, u *url.URL) string {
	fields := ""
	for _, h := range a.Headers {
		fields += h + "\r\n"
	}
	return " HTTP/1.1\r\nHost: " + u.Host + "\r\n" + fields
}

// ownLoad sends the same request, or a random one of several, again and again. It reads each answer completely.
func ownLoad(ctx context.Context, a Target) (Load, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return Load{}, err
	}
	uris := a.URIs
	if len(uris) == 0 {
		uris = []string{u.RequestURI()}
	}
	fields := []string{"\r\n"}
	for i, h := range a.Varying {
		fields = append(fields[:i], h+"\r\n\r\n")
	}
	var requests []string
	for _, uri := range uris {
		for _, field := range fields {
			requests = append(requests, strings.Repeat("GET "+uri+rest(a, u)+field, max(1, a.Together)))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, a.Long)
	defer cancel()
	took, errs := make([][]time.Duration, a.Clients), make([]error, a.Clients)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range a.Clients {
		wg.Go(func() { took[i], errs[i] = ownClient(ctx, u, requests, max(1, a.Together)) })
	}
	wg.Wait()
	long := time.Since(began)
	var all []time.Duration
	for _, t := range took {
		all = append(all, t...)
	}
	return Load{len(all), float64(len(all)) / long.Seconds(), Median(all), Quantile(all, 0.99)}, errors.Join(errs...)
}

// ownClient runs one connection of ownLoad until the context ends.
func ownClient(ctx context.Context, to *url.URL, requests []string, together int) (took []time.Duration, err error) {
	conn, err := net.Dial("tcp", to.Host)
	if err != nil {
		return nil, err
	}
	if to.Scheme == "https" {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(Patience)); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, 64<<10)
	for ctx.Err() == nil {
		began := time.Now()
		if _, err := io.WriteString(conn, requests[rand.IntN(len(requests))]); err != nil {
			return took, err
		}
		for range together {
			if err := readAnswer(in); err != nil {
				return took, err
			}
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}

func readAnswer(in *bufio.Reader) error {
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %q", resp.Status)
	}
	return nil
}
