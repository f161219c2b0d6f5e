package rabbitmq

import (
	"encoding/json"
	"errors"
	"fmt"

	"thalweg/internal/store/queue"
	"thalweg/internal/store/state"
)

// formatVersion is of messages: one is raised when those who know only the
// earlier one would take a message wrongly. Fields may be added without.
const formatVersion = 1

// limitBody bounds a message: names of nodes are the only long texts in one.
const limitBody = 64 << 10 // bytes

// errNewer is of a message of a later version: another process may know it.
var errNewer = errors.New("message of a later version")

// hintMessage is a hint on the wire.
type hintMessage struct {
	Version   int    `json:"v"`
	Workspace string `json:"w"`
	Run       int64  `json:"r"`
	Node      string `json:"n"`
	Batch     int    `json:"b"`
	Epoch     int64  `json:"e"`
	Attempt   int    `json:"a"`
	Class     string `json:"c,omitempty"`
	Priority  int8   `json:"p,omitempty"`
}

// signalMessage is a signal on the wire; without a run it says that hints of a
// priority were published.
type signalMessage struct {
	Version   int    `json:"v"`
	Kind      int8   `json:"k"`
	Workspace string `json:"w,omitempty"`
	Run       int64  `json:"r,omitempty"`
}

// kindHints is the kind of signal by which processes learn that hints wait.
const kindHints int8 = 0

func encodeHint(h queue.Hint) ([]byte, error) {
	return json.Marshal(hintMessage{Version: formatVersion, Workspace: h.Workspace, Run: h.Run, Node: h.Node,
		Batch: h.Batch,
		Epoch: h.Epoch, Attempt: h.Attempt, Class: h.Class, Priority: int8(h.Priority)})
}

func decodeHint(body []byte) (queue.Hint, error) {
	var m hintMessage
	if err := decode(body, &m, &m.Version); err != nil {
		return queue.Hint{}, err
	}
	key := state.BatchKey{NodeKey: state.NodeKey{RunKey: state.RunKey{Workspace: m.Workspace, Run: m.Run},
		Node: m.Node},
		Batch: m.Batch}
	return queue.Hint{Offer: state.Offer{BatchKey: key, Epoch: m.Epoch, Attempt: m.Attempt, Class: m.Class},
		Priority: queue.Priority(m.Priority)}, nil
}

func encodeSignal(kind int8, run state.RunKey) ([]byte, error) {
	return json.Marshal(signalMessage{Version: formatVersion, Kind: kind, Workspace: run.Workspace, Run: run.Run})
}

func decodeSignal(body []byte) (int8, state.RunKey, error) {
	var m signalMessage
	if err := decode(body, &m, &m.Version); err != nil {
		return 0, state.RunKey{}, err
	}
	return m.Kind, state.RunKey{Workspace: m.Workspace, Run: m.Run}, nil
}

func decode(body []byte, into any, version *int) error {
	if len(body) > limitBody {
		return fmt.Errorf("message of %d bytes", len(body))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("read message: %w", err)
	}
	switch {
	case *version > formatVersion:
		return errNewer
	case *version < 1:
		return errors.New("message without a version")
	}
	return nil
}
