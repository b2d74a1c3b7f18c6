#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs tests as Windows programs under Wine: windows.sh DIR [FLAG of go test]... PACKAGE...
# DIR keeps the Windows that they see. On Debian: apt-get install --no-install-recommends wine wine64 gcc-mingw-w64-x86-64-win32
set -eu
cc=x86_64-w64-mingw32-gcc
for tool in wine wineserver flock $cc; do
  command -v $tool >/dev/null || { echo "windows: no $tool here: the tests of Windows are skipped"; exit 0; }
done
mkdir -p "$1"
dir=$(cd "$1" && pwd)
shift
unset DISPLAY
export WINEPREFIX="$dir/prefix" WINEDEBUG=-all WINEDLLOVERRIDES="winemenubuilder.exe,mscoree,mshtml=d"
system="$WINEPREFIX/drive_c/windows/system32"
exec 9>"$dir/lock"
flock 9 # the end of one run ends what another one has started
trap 'wineserver -k || true' EXIT

if [ ! -f "$system/kernel32.dll" ]; then
  wine wineboot -i >/dev/null 2>&1
  wine winecfg -v win10 >/dev/null 2>&1 # Wine 8 says Windows 7, which Go does not run on
fi

# Go takes its random numbers from ProcessPrng, which Wine lacks before version 9.
if [ ! -f "$system/bcryptprimitives.dll" ]; then
  cat >"$dir/prng.c" <<'END'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE to, SIZE_T size)
{
	while (size > 0) {
		ULONG part = size < 1 << 28 ? (ULONG)size : 1 << 28;
		if (!SystemFunction036(to, part))
			return FALSE;
		to += part;
		size -= part;
	}
	return TRUE;
}
END
  $cc -O1 -shared -o "$system/bcryptprimitives.dll" "$dir/prng.c" -ladvapi32
fi

# os.RemoveAll asks for FileDispositionInformationEx, of which Wine 8 says "not implemented" and not "unknown":
# the tests are built with a copy of that file which goes on as after "unknown".
file=src/internal/syscall/windows/at_windows.go
sed 's/case STATUS_INVALID_INFO_CLASS,/case NTStatus(0xC0000002), &/; s/, case STATUS/, STATUS/' "$(go env GOROOT)/$file" >"$dir/at_windows.go"
if cmp -s "$(go env GOROOT)/$file" "$dir/at_windows.go"; then
  echo "windows: $file of this Go has another form: mend tools/windows.sh"
  exit 1
fi
printf '{"Replace": {"%s": "%s"}}\n' "$(go env GOROOT)/$file" "$dir/at_windows.go" >"$dir/overlay.json"

GOOS=windows GOARCH=amd64 CGO_ENABLED=0 go test -overlay "$dir/overlay.json" -p 1 -vet=off -short -timeout 20m -exec wine "$@"
