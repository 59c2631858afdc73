// Who owns what: embedded structs, and the methods that a type really has.

package house

import (
	"go/ast"
	"maps"
	"path"
	"strings"
)

// typeInfo is what the files of a package declare of one type.
type typeInfo struct {
	methods  map[string]bool
	embedded []string // types of the product that a struct embeds, or that an alias or a definition is
	isStruct bool
}

// owners are the types of the product, by folder and name.
type owners map[string]*typeInfo

func (o owners) at(name string) *typeInfo {
	if o[name] == nil {
		o[name] = &typeInfo{methods: map[string]bool{}}
	}
	return o[name]
}

// ownersOf reads the types of all packages that are no tests. A function whose first parameter is a pointer to a type
// of its package counts as a method of it.
func ownersOf(files []file) owners {
	all := owners{}
	for _, f := range files {
		if f.test {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					all.at(f.dir + "." + receiver(d.Recv.List[0].Type)).methods[d.Name.Name] = true
				} else if first := d.Type.Params.List; len(first) > 0 && d.Type.TypeParams == nil {
					if pointer, ok := first[0].Type.(*ast.StarExpr); ok {
						if own, ok := pointer.X.(*ast.Ident); ok {
							all.at(f.dir + "." + own.Name).methods["func "+d.Name.Name] = true
						}
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if typ, ok := spec.(*ast.TypeSpec); ok {
						all.declare(f, typ)
					}
				}
			}
		}
	}
	return all
}

// declare notes what a type embeds.
func (o owners) declare(f file, typ *ast.TypeSpec) {
	info := o.at(f.dir + "." + typ.Name.Name)
	s, ok := typ.Type.(*ast.StructType)
	if !ok {
		if of := f.typeName(typ.Type); of != "" && typ.Assign.IsValid() {
			info.embedded = append(info.embedded, of)
		}
		return
	}
	info.isStruct = true
	for _, field := range s.Fields.List {
		// Where a command's flags are read, tags say that a field holds some of them.
		if of := f.typeName(field.Type); len(field.Names) == 0 && field.Tag == nil && of != "" {
			info.embedded = append(info.embedded, of)
		}
	}
}

// typeName returns a type of the product by its folder and name; "" when the expression names another.
func (f file) typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return f.typeName(x.X)
	case *ast.IndexExpr:
		return f.typeName(x.X)
	case *ast.Ident:
		return f.dir + "." + x.Name
	case *ast.SelectorExpr:
		name, ok := x.X.(*ast.Ident)
		if !ok {
			return ""
		}
		for _, im := range f.ast.Imports {
			whole := strings.Trim(im.Path.Value, `"`)
			local := path.Base(whole)
			if im.Name != nil {
				local = im.Name.Name
			}
			if own(whole) && local == name.Name {
				dir := strings.TrimPrefix(strings.TrimPrefix(whole, "understudy"), "/")
				return path.Join(".", dir) + "." + x.Sel.Name
			}
		}
	}
	return ""
}

// holdsStruct reports whether a type is a struct, also by way of aliases.
func (o owners) holdsStruct(name string) bool {
	info := o[name]
	for hops := 0; info != nil && hops < 5; hops++ {
		if info.isStruct {
			return true
		}
		if len(info.embedded) == 0 {
			return false
		}
		info = o[info.embedded[0]]
	}
	return false
}

// measure notes the embedded structs of each package, and the types with more methods than allowed, promoted ones
// among them.
func (o owners) measure(found over) {
	embeds := map[string]int{}
	for name, info := range o {
		if info.isStruct {
			for _, of := range info.embedded {
				if o.holdsStruct(of) && !strings.HasPrefix(of, "kit/lockwatch.") { // a lock is embedded like one of package sync
					embeds[name[:strings.LastIndexByte(name, '.')]]++
				}
			}
		}
		found.add(len(o.promoted(name, map[string]bool{})), mostMethods, "methods", name)
	}
	for dir, n := range embeds {
		found.add(n, 0, "embeds", dir)
	}
}

// promoted returns the methods of a type with those of what it embeds.
func (o owners) promoted(name string, seen map[string]bool) map[string]bool {
	info := o[name]
	if info == nil || seen[name] {
		return nil
	}
	seen[name] = true
	all := maps.Clone(info.methods)
	for _, of := range info.embedded {
		for method := range o.promoted(of, seen) {
			if !strings.HasPrefix(method, "func ") {
				all[method] = true
			}
		}
	}
	return all
}
