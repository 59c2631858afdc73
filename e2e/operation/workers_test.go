// Workers: the programs of the page about jobs run jobs.

package operation

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/e2e/rig"
	"understudy/internal/checktest"
)

func TestDocumentedWorkers(t *testing.T) {
	t.Parallel()
	const page = "../../docs/how-to/jobs.md"
	d := openDesk(t)
	d.open(page)
	for _, s := range commands(t, page) {
		d.take(s)
	}
	for i, worker := range []string{"python3 worker.py", "sh worker.sh"} {
		t.Run(worker, func(t *testing.T) {
			d.t = t
			name := strings.Fields(worker)[1]
			d.write(name, d.addresses().Replace(rig.ReadFile(t, filepath.Join(d.dir, name))))
			cmd := exec.Command("sh", "-c", "exec "+worker)
			var out strings.Builder
			cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.dir, append(os.Environ(), "HOME="+t.TempDir()), &out, os.Stderr
			checktest.MustNoError(t, cmd.Start(), "start the worker")
			defer func() {
				checktest.NoError(t, cmd.Process.Kill(), "end the worker")
				_ = cmd.Wait() // it was killed
				checktest.Contains(t, out.String(), "mail to ada@example.com\n", "what the worker prints")
			}()
			put := fmt.Sprintf(`curl -X PUT -H "Authorization: Bearer $(cat worker.secret)" -d '{"data": {"to": "ada@example.com"}}' `+
				"http://127.0.0.1:4114/-/jobs/send-mail/0f3b0c52-5d0c-4c2a-9c7e-6a1f5f0d7f%d1", i+2)
			rig.AwaitFor(t, rig.Patience, func() string {
				if got := d.curl(put); !strings.Contains(got, `"state":"done"`) {
					time.Sleep(20 * time.Millisecond)
					return got
				}
				return ""
			})
		})
	}
}
