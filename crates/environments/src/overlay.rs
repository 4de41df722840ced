//! Overlay mounts: a worktree that costs nothing to make, whatever its size.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, statfs};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// What the kernel calls an overlay.
const MAGIC: rustix::fs::FsWord = 0x794c_7630;

/// Shows `lower` at `target`, with all that changes in `upper`.
pub(crate) fn show(lower: &Path, upper: &Path, work: &Path, target: &Path) -> io::Result<()> {
    let (lower, _lower) = option_value(lower)?;
    let (upper, _upper) = option_value(upper)?;
    let (work, _work) = option_value(work)?;
    let mut options = b"lowerdir=".to_vec();
    options.extend(lower.as_bytes());
    options.extend(b",upperdir=");
    options.extend(upper.as_bytes());
    options.extend(b",workdir=");
    options.extend(work.as_bytes());
    // A folder that came with the repository can be renamed like any other.
    options.extend(b",redirect_dir=on,metacopy=off,index=off");
    let options = CString::new(options).map_err(io::Error::other)?;
    // The container's root can create setuid programs and, with MKNOD, device nodes in it. The
    // flags hold here and in the container, whose bind mount inherits them.
    let flags = MountFlags::NODEV | MountFlags::NOSUID;
    mount("cofer", target, "overlay", flags, options.as_c_str())?;
    Ok(())
}

/// The path as a mount option; one with a separator in it is named by a descriptor.
fn option_value(path: &Path) -> io::Result<(OsString, Option<OwnedFd>)> {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| b":,\\\"".contains(byte)) {
        return Ok((OsString::from_vec(bytes.to_vec()), None));
    }
    let folder = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    Ok((format!("/proc/self/fd/{}", folder.as_raw_fd()).into(), Some(folder)))
}

/// Whether an overlay is shown there now.
pub(crate) fn is_shown(target: &Path) -> bool {
    let is_overlay = |path: &Path| statfs(path).is_ok_and(|found| found.f_type == MAGIC);
    let device = |path: &Path| rustix::fs::lstat(path).map(|found| found.st_dev).ok();
    is_overlay(target) && device(target) != target.parent().and_then(device)
}

/// Takes it away; whoever is in it keeps it until they leave.
pub(crate) fn hide(target: &Path) -> io::Result<()> {
    while is_shown(target) {
        unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
    }
    Ok(())
}

/// Takes away whatever is mounted there.
pub(crate) fn hide_all(target: &Path) -> io::Result<()> {
    loop {
        match unmount(target, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // Nothing is mounted there, or nothing is there.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether this process may mount overlays on the file system of `folder`.
pub(crate) fn works_in(folder: &Path) -> bool {
    let attempt = || -> io::Result<()> {
        let place = tempfile::Builder::new().prefix("probe.").tempdir_in(folder)?;
        let [lower, upper, work, target] =
            ["lower", "upper", "work", "target"].map(|name| place.path().join(name));
        for path in [&lower, &upper, &work, &target] {
            std::fs::create_dir(path)?;
        }
        let shown = show(&lower, &upper, &work, &target);
        let usable = shown.and_then(|()| std::fs::write(target.join("x"), ""));
        hide(&target)?;
        usable
    };
    match attempt() {
        Ok(()) => true,
        Err(error) => {
            tracing::debug!(%error, folder = %folder.display(), "no overlays here");
            false
        }
    }
}
