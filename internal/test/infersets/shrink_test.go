package infersets

import (
	"context"
	"slices"
	"time"
)

// shrinkTime limits the time for which a set is made smaller.
const shrinkTime = 4 * time.Second

// shrink leaves out files, columns and rows as long as the set fails in the same way.
func (m *machine) shrink(ctx context.Context, s *set, bad *failure) (*set, *failure) {
	end := time.Now().Add(shrinkTime)
	tried := func(to *set) bool {
		if time.Now().After(end) {
			return false
		}
		again := m.try(ctx, to)
		if again == nil || again.class != bad.class {
			return false
		}
		s, bad = to, again
		return true
	}
	for changed := true; changed && time.Now().Before(end); {
		changed = false
		for i := len(s.files) - 1; i >= 0 && len(s.files) > 1; i-- {
			changed = tried(s.with(func(files []file) []file { return slices.Delete(files, i, i+1) })) || changed
		}
		for i := range s.files {
			change := func(do func(f *file)) {
				changed = tried(s.with(func(files []file) []file { do(&files[i]); return files })) || changed
			}
			f := s.files[i]
			for n := len(f.Records) / 2; n > 0; n /= 2 {
				for at := 0; at+n <= len(s.files[i].Records); at += n {
					change(func(f *file) { f.Records = slices.Delete(slices.Clone(f.Records), at, at+n) })
				}
			}
			for j := f.Width - 1; j >= 0 && s.files[i].Width > 1; j-- {
				change(func(f *file) { f.without(j) })
			}
			if len(f.Titles) > 0 {
				change(func(f *file) { f.Titles = f.Titles[1:] })
			}
			if f.encoding+f.pack != "" || f.bom || f.trailing > 0 {
				change(func(f *file) { f.encoding, f.pack, f.bom = "", "", false })
				change(func(f *file) { f.trailing = 0 })
			}
		}
	}
	return s, bad
}

// with is a copy of the set with other files.
func (s *set) with(change func(files []file) []file) *set {
	out := *s
	out.files = change(slices.Clone(s.files))
	return &out
}

// without leaves out a column.
func (f *file) without(j int) {
	if f.Width--; f.Width == 1 {
		f.trailing = 0
	}
	f.types = slices.Delete(slices.Clone(f.types), j, j+1)
	if f.Header != nil {
		f.Header = slices.Delete(slices.Clone(f.Header), j, j+1)
	}
	f.Titles = slices.Clone(f.Titles)
	for i, rec := range f.Titles {
		f.Titles[i] = rec[:min(len(rec), f.Width)]
	}
	f.Records = slices.Clone(f.Records)
	for i, rec := range f.Records {
		if !rec.Broken {
			f.Records[i].Cells = slices.Delete(slices.Clone(rec.Cells), j, j+1)
		}
	}
}
