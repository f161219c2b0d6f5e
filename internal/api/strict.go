package api

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// strictly looks through JSON for what programs read differently.
type strictly struct {
	text []byte
	d    *json.Decoder
	path *huma.PathBuffer
}

// ambiguous finds a name that an object has twice, or a text that is no Unicode, in JSON that can be read.
func ambiguous(text []byte) error {
	s := strictly{text, json.NewDecoder(bytes.NewReader(text)), huma.NewPathBuffer([]byte("body"), len("body"))}
	s.d.UseNumber()
	return s.value()
}

func (s strictly) value() error {
	token, err := s.next()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for i := 0; (token == json.Delim('{') || token == json.Delim('[')) && s.d.More(); i++ {
		if token == json.Delim('[') {
			s.path.PushIndex(i)
		} else {
			key, err := s.next()
			if err != nil {
				return err
			}
			name, _ := key.(string) // keys are
			s.path.Push(name)
			if names[name] {
				return &huma.ErrorDetail{Location: s.path.String(), Message: "it is there twice"}
			}
			names[name] = true
		}
		if err := s.value(); err != nil {
			return err
		}
		s.path.Pop()
	}
	if _, opens := token.(json.Delim); opens {
		_, err = s.next() // the end
	}
	return err
}

// next returns the next token, unless it is a text that is no Unicode.
func (s strictly) next() (json.Token, error) {
	from := s.d.InputOffset()
	token, err := s.d.Token()
	if _, is := token.(string); is && !unicodeText(s.text[from:s.d.InputOffset()]) {
		return nil, &huma.ErrorDetail{Location: s.path.String(),
			Message: "a text is no Unicode: send UTF-8, and surrogates in pairs"}
	}
	return token, err
}

// unicodeText reports whether a text of JSON, with its escapes, stands for Unicode.
func unicodeText(raw []byte) bool {
	escaped := func(at int) rune { // of \uXXXX
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return 0
		}
		c, _ := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16) // the decoder has read it
		return rune(c)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if c := escaped(i); utf16.IsSurrogate(c) {
			if utf16.DecodeRune(c, escaped(i+6)) == utf8.RuneError {
				return false
			}
			i += 6
		}
		i++ // what is escaped
	}
	return utf8.Valid(raw)
}
