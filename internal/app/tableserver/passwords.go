package tableserver

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"os"
	"strings"

	"thalweg/internal/base/fault"
)

// Passwords are of those who may ask.
type Passwords struct{ sums [][sha256.Size]byte }

const (
	passwordBytesMin = 16      // those who guess may try often
	passwordFileMax  = 1 << 20 // bytes
	passwordHint     = "write a password a line, or a user and a password: openssl rand -hex 20 makes one"
)

// ReadPasswords reads a file that has a password a line, or a user and a password; lines
// that begin with # are for people. secret hears of each, so that nobody is shown it.
func ReadPasswords(path string, secret func(value string)) (*Passwords, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > passwordFileMax {
		err = fmt.Errorf("it has more than %d bytes", passwordFileMax)
	}
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.Script, Message: "the passwords cannot be read", Err: err, Hint: passwordHint}
	}
	p := &Passwords{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, passwordFileMax)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) == 1 {
			words = []string{"default", words[0]}
		}
		secret(words[1])
		if len(words) > 2 || len(words[1]) < passwordBytesMin {
			return nil, &fault.Error{Kind: fault.Script, Hint: passwordHint,
				Message: fmt.Sprintf("line %d of %s is no password of at least %d bytes", n, path, passwordBytesMin)}
		}
		p.sums = append(p.sums, sumOf([]byte(words[0]), []byte(words[1])))
	}
	if len(p.sums) == 0 {
		return nil, &fault.Error{Kind: fault.Script, Message: path + " has no password", Hint: passwordHint}
	}
	return p, nil
}

// Check reports whether a password is a user's. It takes as long whichever it is.
func (p *Passwords) Check(user, password []byte) bool {
	sum, right := sumOf(user, password), 0
	for _, s := range p.sums {
		right |= subtle.ConstantTimeCompare(sum[:], s[:])
	}
	return right == 1
}

func sumOf(user, password []byte) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(user), user, password))
}
