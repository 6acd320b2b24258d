//! Skills: a server of those in a folder, and a client that reads those of a server.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use rmcp::handler::server::skill_catalog::SkillCatalog;
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::transport::{TokioChildProcess, stdio};
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleServer, ServerHandler, ServiceError,
    ServiceExt,
};
use serde_json::json;
use tokio::process::Command;

use crate::server::failed;

#[derive(Clone)]
struct Skills(Arc<SkillCatalog>);

/// Serves standard input and output until the client is gone.
pub async fn serve(folder: &str) -> Result<(), Box<dyn Error>> {
    Skills(Arc::new(SkillCatalog::from_dir(folder)?)).serve(stdio()).await?.waiting().await?;
    Ok(())
}

impl ServerHandler for Skills {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_resources().enable_skills_with_directory_read();
        ServerConfig::new(capabilities.build())
    }

    async fn list_skills(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        Ok(self.0.list_skills())
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        self.0.get_skill(&request.uri)
    }

    async fn read_resource_directory(
        &self,
        request: ReadResourceDirectoryRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceDirectoryResult, ErrorData> {
        self.0.read_resource_directory(&request.uri)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.0.read_resource(&request.uri).map(Into::into);
        read.ok_or_else(|| ErrorData::resource_not_found(request.uri, None))
    }
}

#[derive(Clone, Default)]
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("skills-rmcp", "1.0.0"))
    }
}

/// Reads and verifies all files of the skills of a server, and prints what it found.
pub async fn read(command: &[String]) -> Result<(), Box<dyn Error>> {
    let (program, arguments) = command.split_first().ok_or("a program")?;
    let mut program = Command::new(program);
    program.args(arguments);
    let transport = TokioChildProcess::new(program)?;
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    let client = Client.serve_with_lifecycle(transport, mode).await?;
    let skills = client.list_all_skills().await?;
    validate_skills(&skills)?;
    let mut found = BTreeMap::new();
    for skill in &skills {
        let got = client.get_skill(GetSkillRequestParams::new(&skill.uri)).await?.skill;
        let SkillResources::Files(files) = &got.resources else { return Err("it is dynamic".into()) };
        for file in files {
            let read = client.read_resource(ReadResourceRequestParams::new(&file.uri)).await?;
            let bytes = bytes_of(&read.contents)?;
            file.verify(&bytes)?;
            found.insert(file.uri.clone(), sha256_digest(&bytes).trim_start_matches("sha256:").to_owned());
        }
    }
    let root = skills.first().and_then(|skill| skill.uri.strip_suffix("/SKILL.md")).ok_or("no skill")?;
    let listed = client.read_resource_directory(ReadResourceDirectoryRequestParams::new(root)).await?;
    let directories: Vec<_> =
        listed.resources.iter().filter(|child| child.is_directory()).map(|child| &child.uri).collect();
    let unknown = match client.get_skill(GetSkillRequestParams::new("skill://none/SKILL.md")).await {
        Err(ServiceError::McpError(error)) => Some(error.code.0),
        _ => None,
    };
    println!("{}", json!({ "found": found, "directories": directories, "unknown": unknown }));
    client.cancel().await.map_err(failed)?;
    Ok(())
}

fn bytes_of(contents: &[ResourceContents]) -> Result<Vec<u8>, Box<dyn Error>> {
    match contents {
        [ResourceContents::TextResourceContents { text, .. }] => Ok(text.clone().into_bytes()),
        [ResourceContents::BlobResourceContents { blob, .. }] => {
            Ok(base64::Engine::decode(&base64::prelude::BASE64_STANDARD, blob)?)
        }
        _ => Err("not one file".into()),
    }
}
