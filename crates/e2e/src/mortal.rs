//! An HTTP server that dies in the middle of everything and rises again on the port it had. It
//! has threads of its own: when it dies, it dies at once.

use std::net::SocketAddr;

use axum::Router;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// See the module. Dies when it is dropped.
pub(crate) struct Mortal {
    address: SocketAddr,
    routes: Router,
    runtime: Option<Runtime>,
}

impl Mortal {
    /// Starts it on a free port.
    pub(crate) fn start(routes: Router) -> Self {
        let address = "127.0.0.1:0".parse().expect("an address");
        let mut mortal = Self { address, routes, runtime: None };
        mortal.rise();
        mortal
    }

    /// Starts it again, on the port it had.
    pub(crate) fn rise(&mut self) {
        assert!(self.runtime.is_none(), "it runs already");
        let runtime = Runtime::new().expect("a runtime can be made");
        let listener = std::net::TcpListener::bind(self.address).expect("the port is free");
        listener.set_nonblocking(true).expect("a listener can be asked not to wait");
        self.address = listener.local_addr().expect("a listener has an address");
        let routes = self.routes.clone();
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).expect("a runtime takes it");
            axum::serve(listener, routes).await.expect("it serves");
        });
        self.runtime = Some(runtime);
    }

    /// Connections break, and nobody listens any more.
    pub(crate) fn die(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    /// Where it is, without a path.
    pub(crate) fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Mortal {
    fn drop(&mut self) {
        self.die();
    }
}
