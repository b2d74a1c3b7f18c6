// SPDX-License-Identifier: Apache-2.0

package privacy

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Restrict gives a file or directory, and what will be made in it, to the user and the system.
func Restrict(path string) error {
	user, err := userSID()
	if err != nil {
		return err
	}
	list, err := windows.SecurityDescriptorFromString(fmt.Sprintf("D:P(A;%[1]s;FA;;;%[2]s)(A;%[1]s;FA;;;SY)", inherited(path, "OICI"), user))
	if err != nil {
		return err
	}
	return setAccess(path, list)
}

// CopyAccess gives the file to the access list of the file from.
func CopyAccess(from, to string) error {
	list, err := windows.GetNamedSecurityInfo(from, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return tolerate(err)
	}
	return setAccess(to, list)
}

// setAccess sets a list as it is: whether it inherits is a part of it.
func setAccess(path string, list *windows.SECURITY_DESCRIPTOR) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	file, err := windows.CreateFile(name, windows.READ_CONTROL|windows.WRITE_DAC, share, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return tolerate(err)
	}
	defer windows.CloseHandle(file)
	return tolerate(windows.SetKernelObjectSecurity(file, windows.DACL_SECURITY_INFORMATION, list))
}

// tolerate passes over a disk that has no access lists, and a network share that lets no user change them: such a place can be
// used all the same, and Exposure says who has access.
func tolerate(err error) error {
	for _, known := range []error{windows.ERROR_NOT_SUPPORTED, windows.ERROR_INVALID_FUNCTION, windows.ERROR_OBJECT_NOT_FOUND, windows.ERROR_ACCESS_DENIED} {
		if errors.Is(err, known) {
			return nil
		}
	}
	return err
}

// Exposure says how other users may use a file or directory, and what to do, as the end of a sentence that begins with
// its name. It is empty if they may not. Administrators may, since they can give themselves every right.
func Exposure(path string) (string, error) {
	list, err := windows.GetNamedSecurityInfo(path, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return "", tolerate(err)
	}
	user, err := userSID()
	if err != nil {
		return "", err
	}
	dacl, _, err := list.DACL()
	if err != nil || dacl == nil {
		return "has no access list, so that every user has access: move it to a disk with NTFS", tolerate(err)
	}
	var names, ids []string
	for i := range uint32(dacl.AceCount) {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(dacl, i, &entry); err != nil {
			return "", err
		}
		if entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || entry.Mask&uses == 0 {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		if id := sid.String(); id != user && !slices.Contains(trusted, id) && !slices.Contains(ids, id) {
			names, ids = append(names, accountOf(sid)), append(ids, id)
		}
	}
	if ids == nil {
		return "", nil
	}
	rights := inherited(path, "(OI)(CI)") + "F"
	return fmt.Sprintf(`is open to %s: run icacls "%s" /inheritance:r /remove:g "*%s" /grant:r "*%s:%s" "*S-1-5-18:%s"`,
		strings.Join(names, ", "), path, strings.Join(ids, `" "*`), user, rights, rights), nil
}

// uses are the rights to read or change a file or directory, or its access list.
const uses = windows.FILE_READ_DATA | windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER |
	windows.GENERIC_ALL | windows.GENERIC_READ | windows.GENERIC_WRITE

// trusted are the system, administrators, and whoever makes or owns a file.
var trusted = []string{"S-1-5-18", "S-1-5-32-544", "S-1-3-0", "S-1-3-4"}

func accountOf(sid *windows.SID) string {
	name, domain, _, err := sid.LookupAccount("")
	switch {
	case err != nil:
		return sid.String()
	case domain != "":
		return domain + `\` + name
	}
	return name
}

func userSID() (string, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return "", err
	}
	return user.User.Sid.String(), nil
}

// inherited returns the flags with which a directory hands its list on to what is made in it.
func inherited(path, flags string) string {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return ""
	}
	return flags
}
