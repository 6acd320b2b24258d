//! Skills: those of a server from its directory, and files of one read by a client.

use crate::front::Client;
use crate::os::skill_files;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::Future;
use core::pin::Pin;
use mcp_proto::skills::{Held, ServedSkill, Skill, SkillError, SkillReader};
use std::path::Path;

pub use crate::os::SkillFolderError;

/// Reads a skill from its directory, once: what happens to the directory later changes nothing.
/// `path` is its place among the skills of the server: see [`Skill::from_files`].
///
/// The directory and everything in it is opened without following links, one in the other: what is
/// exchanged for a link meanwhile is not followed either. Names that begin with a dot are left out.
/// Anything else than a file or a directory is an error, since a skill without it would be another
/// one.
///
/// ```no_run
/// use mcp_driver::read_skill;
/// use mcp_proto::Router;
///
/// let skill = read_skill("billing/refunds", "/srv/skills/refunds")?;
/// let router = Router::new("shop", "1.0").skill(skill);
/// # drop(router);
/// # Ok::<(), mcp_driver::SkillFolderError>(())
/// ```
///
/// # Errors
/// [`SkillFolderError`].
pub fn read_skill(path: &str, directory: impl AsRef<Path>) -> Result<ServedSkill, SkillFolderError> {
    let files = skill_files(directory.as_ref())?;
    Skill::from_files(path, files).map_err(SkillFolderError::Skill)
}

/// Reads a file of a skill.
impl SkillReader for Client {
    type Output<'a> = Pin<Box<dyn Future<Output = Result<Vec<u8>, SkillError>> + Send + 'a>>;

    fn read_skill<'a>(&'a self, held: &'a Held, uri: &'a str) -> Self::Output<'a> {
        Box::pin(async move {
            let result = self.call(held.request(uri)?).await?;
            match held.accept(uri, &result) {
                Err(found) if found.is_mismatch() => {
                    let outcome = self.call(held.refresh()).await;
                    Err(held.refreshed(found, outcome))
                }
                accepted => accepted,
            }
        })
    }
}
