// DynamoDB Local as AWS ships it, on a free port of the loopback interface alone.
//
// Its own main class has no option for an address: it listens on all of them, and nobody on the network
// needs to see the records of a test. This one takes the same options, writes `port N` when it serves, and
// ends when its standard input does. A JDK runs this file as it is.

import java.lang.reflect.Field;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

public class DynamoDBOnLoopback {
    public static void main(String[] options) throws Exception {
        DynamoDBProxyServer dynamodb = ServerRunner.createServerFromCommandLineArgs(options);
        Field server = DynamoDBProxyServer.class.getDeclaredField("server");
        server.setAccessible(true);
        ServerConnector connector = (ServerConnector) ((Server) server.get(dynamodb)).getConnectors()[0];
        connector.setHost("127.0.0.1");
        connector.setPort(0);
        dynamodb.start();
        System.out.println("port " + connector.getLocalPort());
        while (System.in.read() != -1) {
            // Nothing is said on this line; its end is what counts.
        }
        System.exit(0);
    }
}
