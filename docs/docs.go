// Package docs carries the documentation inside the program.
package docs

import "embed"

// Files holds the pages of the documentation as Markdown, in the folders start, how-to, reference and
// explanation, and their pictures.
//
//go:embed README.md claims claims.md limits.md lineage.md measuring.md buffers.svg overview.svg start how-to reference explanation
var Files embed.FS
