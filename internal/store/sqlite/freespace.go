// This file overwrites the free space of the file. It visits every page of every tree, every overflow chain and
// the list of free pages.

package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"understudy/internal/store/db"
)

// freeSpace is one pass over the file that overwrites its free space.
type freeSpace struct {
	layout      layout
	ctx         context.Context
	file        *os.File
	only        map[uint32]bool // the numbers of the pages to overwrite, or nil for all pages
	page        []byte
	overwritten int64
}

// sweepFile overwrites unused bytes in the pages of only, or in all pages if only is nil. The file must not
// change meanwhile. It returns how many bytes it overwrote.
func (e *Engine) sweepFile(ctx context.Context, roots []uint32, only map[uint32]bool) (overwritten int64, err error) {
	if only != nil && len(only) == 0 {
		return 0, nil
	}
	w := &freeSpace{ctx: ctx, file: e.file, only: only}
	var header [100]byte
	if _, err := w.file.ReadAt(header[:], 0); err != nil {
		return 0, err
	}
	if w.layout, err = readLayout(header[:]); err != nil {
		return 0, err
	}
	w.page = make([]byte, w.layout.size)
	for _, root := range roots {
		depth, err := w.measureDepth(root)
		if err == nil {
			err = w.walkTree(root, depth)
		}
		if err != nil {
			return w.overwritten, db.NewDamageError("the file cannot be cleaned: %w", err)
		}
	}
	if err := w.walkFreeList(binary.BigEndian.Uint32(header[32:])); err != nil {
		return w.overwritten, db.NewDamageError("the file cannot be cleaned: %w", err)
	}
	return w.overwritten, nil
}

// isWanted reports whether the pass should overwrite a page.
func (w *freeSpace) isWanted(number uint32) bool { return w.only == nil || w.only[number] }

// read reads a page into the shared buffer.
func (w *freeSpace) read(number uint32) ([]byte, error) {
	if err := db.CheckContext(w.ctx); err != nil {
		return nil, err
	}
	if number < 1 || number > w.layout.pages {
		return nil, fmt.Errorf("page %d of %d", number, w.layout.pages)
	}
	_, err := w.file.ReadAt(w.page, int64(number-1)*int64(w.layout.size))
	return w.page, err
}

// measureDepth returns how many levels lie below a page. All leaves of a tree are on the same level.
func (w *freeSpace) measureDepth(number uint32) (depth int, err error) {
	const maxDepth = 64
	for depth = range maxDepth {
		data, err := w.read(number)
		if err != nil {
			return 0, err
		}
		t, err := w.layout.parse(number, data)
		if err != nil || t.isLeaf() {
			return depth, err
		}
		number = t.children[0]
	}
	return 0, fmt.Errorf("a tree is deeper than %d", maxDepth)
}

// walkTree visits a page and the pages below it.
func (w *freeSpace) walkTree(number uint32, depth int) error {
	if depth == 0 && !w.isWanted(number) {
		return nil
	}
	data, err := w.read(number)
	if err != nil {
		return err
	}
	t, err := w.layout.parse(number, data)
	if err != nil {
		return err
	}
	if t.isLeaf() != (depth == 0) {
		return fmt.Errorf("page %d is on the wrong level", number)
	}
	if w.isWanted(number) {
		if err := w.eraseUnused(number, data, t.used); err != nil {
			return err
		}
		for _, c := range t.chains {
			if err := w.walkChain(c); err != nil {
				return fmt.Errorf("page %d: %w", number, err)
			}
		}
	}
	for _, child := range t.children {
		if err := w.walkTree(child, depth-1); err != nil {
			return err
		}
	}
	return nil
}

// walkChain follows an overflow chain to its last page and overwrites the bytes after the value.
func (w *freeSpace) walkChain(c chain) error {
	number, left := c.first, c.bytes
	room := int64(w.layout.usable - 4)
	for {
		data, err := w.read(number)
		if err != nil {
			return err
		}
		next := binary.BigEndian.Uint32(data)
		if left <= room {
			if next != 0 {
				return fmt.Errorf("a value goes on after its end, in page %d", next)
			}
			used := make([]bool, w.layout.size)
			for i := range used {
				used[i] = i < 4+int(left) || i >= w.layout.usable
			}
			return w.eraseUnused(number, data, used)
		}
		number, left = next, left-room
	}
}

// walkFreeList visits the free pages: the trunk pages of the list and the leaves they name.
func (w *freeSpace) walkFreeList(trunk uint32) error {
	for steps := uint32(0); trunk != 0; steps++ {
		if steps > w.layout.pages {
			return errors.New("the list of free pages has no end")
		}
		data, err := w.read(trunk)
		if err != nil {
			return err
		}
		next, count := binary.BigEndian.Uint32(data), int(binary.BigEndian.Uint32(data[4:]))
		if count > w.layout.usable/4-2 {
			return fmt.Errorf("page %d lists %d free ones", trunk, count)
		}
		leaves := make([]uint32, count)
		used := make([]bool, w.layout.size)
		for i := range leaves {
			leaves[i] = binary.BigEndian.Uint32(data[8+4*i:])
		}
		for i := range used {
			used[i] = i < 8+4*count
		}
		if err := w.eraseUnused(trunk, data, used); err != nil {
			return err
		}
		for _, leaf := range leaves {
			if data, err = w.read(leaf); err == nil {
				err = w.eraseUnused(leaf, data, make([]bool, w.layout.size))
			}
			if err != nil {
				return err
			}
		}
		trunk = next
	}
	return nil
}

// eraseUnused writes zeros over bytes of a page that are unused and not zero.
func (w *freeSpace) eraseUnused(number uint32, data []byte, used []bool) error {
	base := int64(number-1) * int64(w.layout.size)
	for i := 0; i < len(data); i++ {
		if used[i] || data[i] == 0 {
			continue
		}
		end := i + 1
		for end < len(data) && !used[end] {
			end++
		}
		if _, err := w.file.WriteAt(make([]byte, end-i), base+int64(i)); err != nil {
			return err
		}
		w.overwritten += int64(end - i)
		i = end
	}
	return nil
}
