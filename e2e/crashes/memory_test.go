// Memory: a limit that is set is kept.

package crashes

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/sample"
)

// TestAMemoryLimitIsKept syncs 55,000 records under the smallest limit while 16 readers read lists, pages
// and sums. It is a part of make prove.
func TestAMemoryLimitIsKept(t *testing.T) {
	if !sample.IsFullRun() {
		t.Skip("takes a minute; a part of make prove")
	}
	const limit = 192 << 20
	up := rig.StartAPI(t, "--latency", "0s", "--records", "18334", "--epoch", time.Now().UTC().Format(time.RFC3339)).URL("slowapi")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"twilio.token": rig.APIToken, "demo.secret": rig.DemoToken,
		"understudy.yml": fmt.Sprintf(`data: ./data
viewer: {listen: "127.0.0.1:0", sign_in: none, role: all}
limits: {memory: 192MiB}
sources:
  twilio: {spec: twilio, upstream: %q, user: %s, secret: "file:twilio.token", listen: "127.0.0.1:0", rate: 2000, concurrency: 50, %s}
credentials:
  - {name: demo, source: twilio, user: %[2]s, secret: "file:demo.secret", role: all}
`, up, rig.Account, rig.SyncSetting(t)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := rig.Start(t, dir, "serve")
	var readers sync.WaitGroup
	var over atomic.Bool
	var answers atomic.Int64
	for reader := range 16 {
		readers.Go(func() {
			for n := reader; !over.Load(); n++ {
				url := s.URL("twilio") + rig.Base + fmt.Sprintf("/Calls.json?PageSize=%d", 1+n%1000)
				switch n % 4 {
				case 1:
					url = s.URL("twilio") + rig.Base + fmt.Sprintf("/Messages.json?PageSize=1000&Page=%d", n%30)
				case 2:
					url = s.URL("viewer") + "/twilio/messages?PageSize=200"
				case 3:
					url = s.URL("viewer") + "/-/search?q=kind:messages&sum=price&by=status"
				}
				r, err := rig.Ask(http.MethodGet, rig.Account+":"+rig.DemoToken, url, "")
				if err != nil || r.Status >= 500 && r.Status != http.StatusServiceUnavailable {
					t.Errorf("%s: %d, %v", url, r.Status, err)
					return
				}
				answers.Add(1)
			}
		})
	}
	names := rig.KindsWithIDs(t)
	rig.AwaitFor(t, 10*time.Minute, func() string { return rig.Incomplete(t, s.URL("viewer"), time.Time{}, names...) })
	more := answers.Load() + 2000
	rig.AwaitFor(t, 10*time.Minute, func() string {
		if n := answers.Load(); n < more && !t.Failed() {
			return fmt.Sprintf("%d answers, want %d", n, more)
		}
		return ""
	})
	over.Store(true)
	readers.Wait()
	peak := peakOf(t, s.Process())
	t.Logf("resident at most %d MiB under a limit of %d MiB, %d answers meanwhile", peak>>20, limit>>20, answers.Load())
	if peak > limit/100*115 {
		t.Errorf("%d MiB are more than 15 %% above the limit", peak>>20)
	}
}

// peakOf returns the most memory that a process was resident with, in bytes.
func peakOf(t *testing.T, process int) (bytes int64) {
	t.Helper()
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = status.Close() }()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			if _, err := fmt.Sscanf(text, "%d kB", &bytes); err != nil {
				t.Fatal(err)
			}
		}
	}
	return bytes << 10
}
