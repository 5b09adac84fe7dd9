//! Small local files that a user asks for by an option, such as `--summary-json`. Each is written in one
//! step.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cluster::path_of_text;
use tempfile::NamedTempFile;

use super::exit::WrongUse;
use super::piped::STANDARD;

/// File that is replaced by a rename: its readers see all of the old or all of the new content.
///
/// Until then the new file has an unpredictable name and must not exist, so that nobody who may write to the
/// folder can redirect the bytes by a link. A device, a pipe or a name below /dev or /proc is written in
/// place, and `-` is the standard output.
pub struct ReportFile<'a> {
    name: &'a str,
    path: PathBuf,
    in_place: bool,
}

impl<'a> ReportFile<'a> {
    /// Checks that the file can be written, so that no work is done in vain. The file is not touched.
    ///
    /// # Errors
    /// When the folder does not exist or cannot be written to, or the name is that of a folder.
    pub fn check(name: &'a str) -> Result<Self> {
        let file = ReportFile::new(name);
        let check = || match fs::metadata(&file.path) {
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            _ if name == STANDARD => Ok(()),
            _ if name.ends_with('/') => Err(io::ErrorKind::IsADirectory.into()),
            _ if file.in_place => Ok(()),
            _ => file.temporary().map(drop),
        };
        let folder = folder_of(&file.path);
        if !file.in_place && name != STANDARD && !folder.exists() {
            bail!(WrongUse(format!(
                "could not write \"{name}\": there is no folder \"{}\"",
                folder.display()
            )));
        }
        check().with_context(|| format!("could not write \"{name}\""))?;
        Ok(file)
    }

    /// Names the file, which is not looked at before it is written.
    pub fn new(name: &'a str) -> Self {
        let path = path_of_text(name);
        let is_special = fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
        let folder = fs::canonicalize(folder_of(&path)).unwrap_or_default();
        let in_place = is_special || ["/dev", "/proc"].iter().any(|of_system| folder.starts_with(of_system));
        ReportFile { name, path, in_place }
    }

    /// Replaces the content of the file.
    pub fn replace(&self, contents: impl AsRef<[u8]>) -> Result<()> {
        self.replace_with(|file| file.write_all(contents.as_ref()))
    }

    /// Replaces the content of the file by what `write` writes.
    pub fn replace_with(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let replace = || {
            if self.name == STANDARD {
                let mut out = io::stdout().lock();
                return write(&mut out).and_then(|()| out.flush());
            }
            if self.in_place {
                let mut file = BufWriter::new(File::create(&self.path)?);
                write(&mut file)?;
                return file.flush();
            }
            let mut file = BufWriter::new(self.temporary()?);
            write(&mut file)?;
            let file = file.into_inner()?;
            file.as_file().sync_all()?;
            file.persist(&self.path)?;
            Ok(())
        };
        replace().with_context(|| format!("could not write \"{}\"", self.name))
    }

    /// Makes a hidden file beside the file, which is removed when dropped.
    fn temporary(&self) -> io::Result<NamedTempFile> {
        let mut temporary = tempfile::Builder::new();
        // The file gets the permissions of any new file, not the private ones of temporary files. The umask
        // still applies.
        temporary.prefix(".dedup-job.").permissions(Permissions::from_mode(0o666));
        temporary.tempfile_in(folder_of(&self.path))
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_report_is_replaced_as_a_whole_and_no_link_leads_it_elsewhere() {
        let here = tempfile::tempdir().unwrap();
        let at = |name: &str| here.path().join(name);
        fs::write(at("victim"), "old").unwrap();
        symlink(at("victim"), at("report")).unwrap();
        symlink(at("victim"), at("report.tmp")).unwrap();
        let name = at("report").into_os_string().into_string().unwrap();
        let file = ReportFile::check(&name).unwrap();
        assert_eq!(names(here.path()).len(), 3);
        file.replace("new").unwrap();
        assert_eq!(fs::read_to_string(at("report")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "old");
        assert!(fs::symlink_metadata(at("report")).unwrap().is_file());
        assert_eq!(names(here.path()).len(), 3);
    }

    #[test]
    fn a_report_that_cannot_be_written_is_found_before_the_work() {
        let here = tempfile::tempdir().unwrap();
        for name in ["none/report", "", "none/"] {
            let name = format!("{}/{name}", here.path().display());
            let error = ReportFile::check(&name).err().map(|error| error.to_string()).unwrap();
            assert!(error.starts_with(&format!("could not write \"{name}\"")), "{error}");
        }
    }

    #[test]
    fn a_device_is_written_in_place() {
        for name in ["/dev/null", "/dev/./stdout"] {
            assert!(ReportFile::new(name).in_place, "{name}");
        }
        ReportFile::check("/dev/null").unwrap().replace("x").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
