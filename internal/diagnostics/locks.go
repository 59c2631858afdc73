// This file shows who holds the locks of this process and who waits for them.

package diagnostics

import (
	"fmt"
	"net/http"
	"time"

	"understudy"
	"understudy/kit/jsonhttp"
	"understudy/kit/lockwatch"
)

// longHold is how long a lock may be held before that is reported. A warm request takes less than a thousandth of it.
const longHold = 100 * time.Millisecond

// showLocks shows what was recorded about the locks.
func (d *Diagnostics) showLocks(w http.ResponseWriter, r *http.Request, _ string) error {
	report := lockwatch.Read()
	if r.URL.Query().Get("format") == "json" || d.o.Page == nil {
		jsonhttp.Write(w, http.StatusOK, report)
	} else {
		d.o.Page(w, r, "locks", "Locks", report)
	}
	return nil
}

// watchLocks handles the form of the page: it begins to watch the locks, or ends that.
func (d *Diagnostics) watchLocks(w http.ResponseWriter, r *http.Request, by string) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxPurge)
	switch r.FormValue("watch") {
	case "on":
		lockwatch.Start(d.o.Now, longHold)
	case "off":
		lockwatch.Stop()
	default:
		return fmt.Errorf("%w: watch: write on or off", understudy.ErrInvalid)
	}
	d.o.Logger.Info("locks", "watch", r.FormValue("watch"), "by", by)
	http.Redirect(w, r, "/-/locks", http.StatusSeeOther)
	return nil
}
