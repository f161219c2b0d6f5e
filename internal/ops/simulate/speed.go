package simulate

import (
	"encoding/json"
	"errors"

	"thalweg/internal/base/fault"
)

// Speed is how fast the cores of a host are, as measured there.
type Speed struct {
	Host      string  `json:"host"`
	Machine   string  `json:"machine"`    // type; "": not known
	CoreSpeed float64 `json:"core_speed"` // times that of a core which carried out the run
}

// speedMax is how many times as fast or as slow as another a core may be.
const speedMax = 100

// ReadSpeed reads what was measured on a host from JSON. Fields that it does not need are left alone.
func ReadSpeed(name string, text []byte) (Speed, error) {
	var s struct {
		Speed
		CoreSpeed *float64 `json:"core_speed"`
	}
	err := json.Unmarshal(text, &s)
	switch {
	case err != nil:
	case s.CoreSpeed == nil:
		err = errors.New("it has no core_speed, and no speed is taken from a name")
	case !(*s.CoreSpeed >= 1.0/speedMax && *s.CoreSpeed <= speedMax):
		err = errors.New("core_speed is from 0.01 to 100")
	default:
		s.Speed.CoreSpeed = *s.CoreSpeed
		return s.Speed, nil
	}
	f := fault.New(fault.Script, "the speed of a host cannot be read: %v", err)
	f.Place.File, f.Hint = name, `it is JSON: {"host": "b", "core_speed": 1.2}, 1 being a core which carried out the run`
	return s.Speed, f
}
