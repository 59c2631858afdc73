// This file shows where this process spends memory and time, to callers who see everything.

package diagnostics

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"understudy"
	"understudy/internal/diagnostics/profile"
	"understudy/internal/jsonapi"
	"understudy/internal/tracing"
	"understudy/kit/jsonhttp"
)

// defaultLength is the duration of a profile if the request does not set it.
const defaultLength = 10 * time.Second

// profileGrace is how much longer than the profile itself the response with the profile may take.
const profileGrace = time.Minute

// ProfileList is the response to /-/profile with format=json and no id.
type ProfileList struct {
	Taking *profile.Taking `json:"taking,omitempty"`
	Kept   []profile.Kept  `json:"kept"`
}

const profilesForAll = "profiles and locks are shown to the role " + understudy.RoleAll + " alone, as they count the work of every record"

// profiles returns a handler that calls do for callers who see every record of every source, and for requests from
// this machine with the token. Other callers are refused, because a profile counts the work of every record. by is
// the caller's name.
func (d *Diagnostics) profiles(do func(w http.ResponseWriter, r *http.Request, by string) error) http.HandlerFunc {
	api := &jsonapi.Options{Identify: d.admitUnrestricted(profilesForAll), Explain: d.explainProfile}
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := api.Identify(r)
		by := c.Name
		switch {
		case isCommand(r):
			by = "the command on this machine"
		case err != nil && d.o.ProfileRefused != nil && strings.Contains(r.Header.Get("Accept"), "text/html"):
			d.o.ProfileRefused(w, r, err)
			return
		case err == nil && (isCrossSite(r) || d.forms.Check(r) != nil):
			err = fmt.Errorf("%w: this request comes from another site", understudy.ErrForbidden)
		}
		if err == nil && d.o.Profiles == nil {
			err = fmt.Errorf("%w: no profiles are taken here", understudy.ErrNotFound)
		}
		if err == nil {
			if err = do(w, r, by); err != nil && r.Context().Err() != nil {
				return // a write error means that the client has left
			}
		}
		if err != nil {
			api.Refuse(w, r, err)
		}
	}
}

// isCrossSite reports whether a page of another site made the browser send the request.
func isCrossSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site == "cross-site" || site == "same-site"
}

// explainProfile completes the error for a request while another profile is taken: it says when that profile ends.
// It hides the text of internal errors.
func (d *Diagnostics) explainProfile(_ *http.Request, err error, a *jsonapi.Refusal) {
	if busy, ok := errors.AsType[*profile.BusyError](err); ok {
		a.RetryAfter = strconv.Itoa(max(1, int(busy.Taking.Until.Sub(d.o.Profiles.Now())/time.Second)+1))
		a.Status = http.StatusConflict
	} else if a.Status == http.StatusServiceUnavailable {
		d.o.Logger.Error("profile", "err", err)
		a.Error = "the profile was not taken or read; the log tells why"
	}
}

// take takes a profile for the time in the parameter for. It responds with the profile in pprof's format or, with
// format=json, as tables. The profile ends if the client disconnects.
func (d *Diagnostics) take(kind string) func(http.ResponseWriter, *http.Request, string) error {
	return func(w http.ResponseWriter, r *http.Request, by string) error {
		if r.Method == http.MethodHead {
			w.Header().Set("Allow", "GET")
			return fmt.Errorf("%w: a profile is taken by GET", understudy.ErrMethod)
		}
		a, err := parseReportOptions(r.URL.Query())
		if err != nil {
			return err
		}
		if a.Since != "" { // an unknown name is refused before the profile is taken
			if _, err := d.o.Profiles.Find(kind, a.Since); err != nil {
				return err
			}
		}
		kept, err := d.takeFor(w, r, kind, r.URL.Query().Get("for"), by)
		if err != nil {
			return err
		}
		if r.URL.Query().Get("format") != "json" {
			return d.sendProfile(w, kept.ID)
		}
		a.ID = kept.ID
		report, err := d.o.Profiles.Report(a)
		if err == nil {
			jsonhttp.Write(w, http.StatusOK, report)
		}
		return err
	}
}

func (d *Diagnostics) takeFor(w http.ResponseWriter, r *http.Request, kind, text, by string) (*profile.Kept, error) {
	length := defaultLength
	if text != "" {
		var err error
		if length, err = understudy.ParseDuration(text); err != nil {
			return nil, fmt.Errorf("%w: for: %q is not a duration; write one such as 60s", understudy.ErrInvalid, text[:min(len(text), 20)])
		}
	}
	if length <= profile.Longest {
		// Some writers have no write deadline, so an error is ignored.
		_ = http.NewResponseController(w).SetWriteDeadline(d.o.Profiles.Now().Add(length + profileGrace))
	}
	d.o.Logger.Info("profile", "kind", kind, "for", length, "by", by)
	return d.o.Profiles.Take(r.Context(), kind, length, by)
}

// parseReportOptions parses the options of a report.
func parseReportOptions(q url.Values) (profile.ReportOptions, error) {
	a := profile.ReportOptions{ID: q.Get("id"), Since: q.Get("since"), Match: q.Get("function")}
	switch q.Get("measure") {
	case "", "allocated", "cpu":
	case "held":
		a.Held = true
	default:
		return a, fmt.Errorf("%w: measure: write allocated or held", understudy.ErrInvalid)
	}
	return a, nil
}

// sendProfile responds with the file of a stored profile.
func (d *Diagnostics) sendProfile(w http.ResponseWriter, id string) error {
	data, name, err := d.o.Profiles.Read(id)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Length", strconv.Itoa(len(data)))
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // a write error means that the client has left
	return nil
}

// stopProfile ends the profile that is being taken. The caller who takes the profile gets what was recorded so far.
func (d *Diagnostics) stopProfile(w http.ResponseWriter, r *http.Request, by string) error {
	stopped := d.o.Profiles.Stop()
	d.o.Logger.Info("profile stopped", "by", by, "was_taken", stopped)
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		http.Redirect(w, r, "/-/profile", http.StatusSeeOther)
		return nil
	}
	jsonhttp.Write(w, http.StatusOK, struct {
		Stopped bool `json:"stopped"`
	}{stopped})
	return nil
}

// startProfile handles the form of the page: it takes a profile and shows it.
func (d *Diagnostics) startProfile(w http.ResponseWriter, r *http.Request, by string) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxPurge)
	if err := r.ParseForm(); err != nil {
		return fmt.Errorf("%w: the form cannot be read", understudy.ErrInvalid)
	}
	kept, err := d.takeFor(w, r, r.PostForm.Get("kind"), r.PostForm.Get("for"), by)
	if err == nil {
		http.Redirect(w, r, "/-/profile?id="+url.QueryEscape(kept.ID), http.StatusSeeOther)
	}
	return err
}

// showProfiles shows the stored profiles, the profile that is being taken, and the report of one stored profile.
func (d *Diagnostics) showProfiles(w http.ResponseWriter, r *http.Request, _ string) error {
	kept, err := d.o.Profiles.List()
	if err != nil {
		return err
	}
	a, err := parseReportOptions(r.URL.Query())
	if err != nil {
		return err
	}
	var report *profile.Report
	if a.ID != "" {
		if report, err = d.o.Profiles.Report(a); err != nil {
			return err
		}
	}
	list := ProfileList{d.o.Profiles.Taking(), append([]profile.Kept{}, kept...)}
	if r.URL.Query().Get("format") == "json" || d.o.Page == nil {
		if report != nil {
			jsonhttp.Write(w, http.StatusOK, report)
		} else {
			jsonhttp.Write(w, http.StatusOK, list)
		}
		return nil
	}
	d.o.Page(w, r, "profile", "Profiles", &ProfilePage{list.Taking, list.Kept, report, []string{profile.Allocs, profile.CPU}})
	return nil
}

// showSlow shows the recent slow requests.
func (d *Diagnostics) showSlow(w http.ResponseWriter, r *http.Request, _ string) error {
	slow := d.o.ListSlow()
	if r.URL.Query().Get("format") == "json" || d.o.Page == nil {
		jsonhttp.Write(w, http.StatusOK, map[string][]tracing.Request{"requests": slow})
		return nil
	}
	d.o.Page(w, r, "slow", "Slow requests", slow)
	return nil
}

// ProfilePage is the content of the page that shows profiles.
type ProfilePage struct {
	Taking *profile.Taking
	Kept   []profile.Kept
	Report *profile.Report
	Kinds  []string // the kinds of profiles that can be taken
}

// Value returns a number of the report with its unit.
func (p *ProfilePage) Value(n int64) string { return profile.Value(p.Report.Measure, n) }

// Percent returns n as a percentage of the report's total.
func (p *ProfilePage) Percent(n int64) string { return profile.Percent(n, p.Report.Total) }

// FormatTime returns a time in UTC.
func (p *ProfilePage) FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// Size returns a number of bytes with its unit.
func (p *ProfilePage) Size(n int64) string { return profile.Value("held", n) }
