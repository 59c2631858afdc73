// Doors for the tests.

package jobs

// FilterOf reads the query of GET /-/jobs.
var FilterOf = filterOf

// CountWaiting returns how many workers wait.
func (r *Runner) CountWaiting() int {
	r.desk.mu.Lock()
	defer r.desk.mu.Unlock()
	return len(r.desk.waiting)
}
