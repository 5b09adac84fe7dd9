import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.gaul.s3proxy.S3Proxy;
import org.gaul.s3proxy.auth.AuthenticationType;
import org.gaul.s3proxy.nio2blob.FilesystemNio2BlobStore;

/** An S3 server on loopback that checks signatures; its buckets are the directories of a folder. */
public class S3 {
    static final String USAGE = "FOLDER KEY SECRET SECONDS";

    /** Serves until standard input closes or the time is up. */
    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            System.err.println(USAGE);
            System.exit(2);
        }
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        S3Proxy server = S3Proxy.builder()
            .blobStore(new FilesystemNio2BlobStore(args[0]))
            .endpoint(URI.create("http://127.0.0.1:0"))
            .awsAuthentication(AuthenticationType.AWS_V4, args[1], args[2])
            .build();
        server.start();
        while (!server.getState().equals("STARTED")) {
            Thread.sleep(10);
        }
        out.print("ready http://127.0.0.1:" + server.getPort() + "\n");
        out.flush();
        Thread input = new Thread(S3::awaitEnd);
        input.setDaemon(true);
        input.start();
        input.join(Long.parseLong(args[3]) * 1000);
        System.exit(0);
    }

    static void awaitEnd() {
        try {
            while (System.in.read() >= 0) {}
        } catch (java.io.IOException closed) {
            // It ended all the same.
        }
    }
}
