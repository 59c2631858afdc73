// This file writes a Debian package: an ar archive of two tarballs.

package main

import (
	"bytes"
	"crypto/md5"
	"fmt"
	"slices"
	"strings"
)

// debianVersion returns the version in Debian's form, in which a tilde sorts a release candidate before its release.
func (r *release) debianVersion() string {
	return strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1)
}

// debianPackage returns the package of a program, with a user, a folder of settings and a service.
func (r *release) debianPackage(p platform, program []byte, common tree) file {
	installed := tree{
		{name: "usr/bin/understudy", data: program, run: true},
		{name: "usr/lib/systemd/system/understudy.service", data: []byte(read("understudy.service"))},
		{name: "usr/share/doc/understudy/examples/understudy.yml", data: []byte(read("understudy.yml"))},
	}
	for _, f := range common.below("usr/") {
		switch {
		case strings.HasPrefix(f.name, "usr/share/man/"):
			f.name, f.data = f.name+".gz", gzipped(f.data)
		case f.name == "usr/share/zsh/site-functions/_understudy":
			f.name = "usr/share/zsh/vendor-completions/_understudy"
		case f.name == "usr/share/doc/understudy/LICENSE":
			f.name = "usr/share/doc/understudy/copyright"
		}
		installed = append(installed, f)
	}
	installed = installed.withFolders()
	kibibytes := 0
	var sums bytes.Buffer
	for _, f := range installed {
		kibibytes += (len(f.data) + 1023) / 1024
		if !f.isFolder() {
			fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.data), f.name)
		}
	}
	about := strings.NewReplacer("@VERSION@", r.debianVersion(), "@ARCH@", p.arch, "@SIZE@", fmt.Sprint(kibibytes)).Replace(read("control"))
	control := tree{{name: "control", data: []byte(about)}, {name: "md5sums", data: sums.Bytes()}}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		control = append(control, file{name: script, data: []byte(read(script)), run: true})
	}
	root := tree{{name: "./"}}
	name := fmt.Sprintf("understudy_%s_%s.deb", r.debianVersion(), p.arch)
	return file{name: name, data: r.arArchive(tree{
		{name: "debian-binary", data: []byte("2.0\n")},
		{name: "control.tar.gz", data: slices.Concat(root, control.below("./")).tarball(r.date)},
		{name: "data.tar.gz", data: slices.Concat(root, installed.below("./")).tarball(r.date)},
	})}
}

// arArchive returns an archive in the format of ar.
func (r *release) arArchive(all tree) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, f := range all {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", f.name, r.date.Unix(), 0, 0, 0o100644, len(f.data))
		b.Write(f.data)
		if len(f.data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}
