package main

import (
	"runtime"
	"testing"

	"understudy/internal/checktest"
)

// A release says its version, its commit and the commit's date. It is not parallel: other tests read the version.
func TestReleaseSaysItsVersionAndCommit(t *testing.T) {
	defer func() { release, commit, commitDate = "", "", "" }()
	checktest.Equal(t, describeVersion(), "understudy (devel) "+runtime.Version(), "without a release")
	release, commit, commitDate = "v0.1.0", "1f0c2d3e4f5061728394a5b6c7d8e9f001122334", "2026-11-30T09:30:00Z"
	checktest.Equal(t, version(), "v0.1.0 "+runtime.Version(), "version()")
	want := "understudy v0.1.0 " + runtime.Version() + " (commit 1f0c2d3e4f50, 2026-11-30T09:30:00Z)"
	checktest.Equal(t, describeVersion(), want, "describeVersion()")
}
